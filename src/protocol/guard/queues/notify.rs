//! The queue of background results.

use super::{Item, NOTIFICATIONS_MAX, Notification, Omitted, Taken, evict};
use crate::facts;
use crate::protocol::guard::Answered;
use crate::protocol::guard::request::Notify;
use crate::protocol::guard::session::Session;
use crate::protocol::guard::work::Work;
use crate::protocol::ids::Name;
use crate::protocol::row::Extra;
use crate::protocol::verdict::Facts;

impl Item for Notification {
    const QUEUE: &'static str = "notifications";

    fn queue(session: &mut Session) -> (&mut Vec<Self>, &mut Vec<Name>) {
        (&mut session.notifications, &mut session.notified)
    }

    fn id(&self) -> &Name {
        &self.id
    }

    fn task_id(&self) -> &Name {
        &self.task_id
    }

    fn is_related(&self) -> bool {
        self.related
    }

    fn place(&mut self, seq: u64) {
        self.seq = seq;
    }

    fn taken(&self) -> Option<&Taken> {
        self.taken.as_ref()
    }

    fn hand_out(&mut self, taken: Taken) -> bool {
        let repeat = self.times_taken > 0;
        self.taken = Some(taken);
        self.times_taken = self.times_taken.saturating_add(1);
        repeat
    }

    fn offer_again(&mut self) {
        self.taken = None;
    }

    fn told(&self) -> Facts {
        facts! {
            "id": self.id, "taskId": self.task_id, "kind": self.kind, "status": self.status, "text": self.text,
            "related": self.related,
        }
    }

    fn omission(self) -> Omitted {
        Omitted {
            id: self.id,
            task_id: self.task_id,
            related: self.related,
            kind: self.kind,
            status: self.status,
            text: self.text,
            text_left_out: false,
            extra: self.extra,
        }
    }
}

impl Work<'_> {
    /// `notify`.
    pub(crate) fn notify(&mut self, request: &Notify) -> Answered {
        match request {
            Notify::Put { id, task, kind, status, text } => {
                self.must_not_be_over()?;
                let id = id.clone().unwrap_or_else(|| self.fresh_item_id::<Notification>());
                if let Some(answer) = self.came_before::<Notification>(&id) {
                    return answer;
                }
                self.refuse_more_text(text.as_deref())?;
                // Decided here and stored: what becomes of the task later changes nothing (O54).
                let related = self.session.is_related_task(task);
                let facts = facts! { "id": id, "taskId": task, "related": related };
                let item = Notification {
                    id,
                    task_id: task.clone(),
                    kind: kind.clone(),
                    status: status.clone(),
                    text: text.clone(),
                    related,
                    at: self.moment.call.now.clone(),
                    seq: 0,
                    taken: None,
                    times_taken: 0,
                    extra: Extra::new(),
                };
                match make_room(&mut self.session) {
                    (omitted, true) => self.append(item, omitted, facts),
                    (omitted, false) => self.leave_out(item, omitted, facts),
                }
            }
            Notify::Take { for_ms, process } => self.take::<Notification>(*for_ms, process.as_ref()),
            Notify::Ack(id) => self.acknowledge::<Notification>(id),
        }
    }
}

/// Makes room for one more, and answers whether there is any. While they have to wait, what belongs to the chain
/// is put out neither for what does not, nor for more of its own (O68, O69).
fn make_room(session: &mut Session) -> (Vec<Omitted>, bool) {
    let defers = session.defers();
    let mut omitted = Vec::new();
    while session.notifications.len() >= NOTIFICATIONS_MAX {
        let Some(item) = evict(&mut session.notifications, |item| !defers || !item.related) else {
            return (omitted, false);
        };
        omitted.push(item.omission());
    }
    (omitted, true)
}
