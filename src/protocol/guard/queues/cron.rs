//! The queue of timers that have fired.

use super::{CRONS_MAX, CRONS_UNRELATED_MAX, Cron, Item, Omitted, Taken, evict};
use crate::facts;
use crate::protocol::codes::Code;
use crate::protocol::guard::Answered;
use crate::protocol::guard::request::CronRequest;
use crate::protocol::guard::session::Session;
use crate::protocol::guard::work::{Work, said};
use crate::protocol::ids::Name;
use crate::protocol::row::Extra;
use crate::protocol::verdict::Facts;

impl Item for Cron {
    const QUEUE: &'static str = "crons";

    fn queue(session: &mut Session) -> (&mut Vec<Self>, &mut Vec<Name>) {
        (&mut session.crons, &mut session.fired)
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
            "id": self.id, "taskId": self.task_id, "wakeup": self.wakeup, "text": self.text,
            "related": self.related,
        }
    }

    fn omission(self) -> Omitted {
        Omitted {
            id: self.id,
            task_id: self.task_id,
            related: self.related,
            kind: self.wakeup.then(|| "wakeup".to_owned()),
            status: None,
            text: self.text,
            text_left_out: false,
            extra: self.extra,
        }
    }
}

impl Work<'_> {
    /// `cron`.
    pub(crate) fn cron(&mut self, request: &CronRequest) -> Answered {
        match request {
            CronRequest::Put { id, task, wakeup, text } => {
                self.must_not_be_over()?;
                let id = id.clone().unwrap_or_else(|| self.fresh_item_id::<Cron>());
                if let Some(answer) = self.came_before::<Cron>(&id) {
                    return answer;
                }
                self.refuse_more_text(text.as_deref())?;
                self.put_cron(Cron {
                    id,
                    task_id: task.clone(),
                    wakeup: *wakeup,
                    text: text.clone(),
                    related: *wakeup && self.session.is_related_wakeup(task),
                    at: self.moment.call.now.clone(),
                    seq: 0,
                    taken: None,
                    times_taken: 0,
                    extra: Extra::new(),
                })
            }
            CronRequest::Take { for_ms, process } => self.take::<Cron>(*for_ms, process.as_ref()),
            CronRequest::Ack(id) => self.acknowledge::<Cron>(id),
        }
    }

    fn put_cron(&mut self, item: Cron) -> Answered {
        let mut facts = facts! {
            "id": item.id, "taskId": item.task_id, "wakeup": item.wakeup, "related": item.related,
        };
        if let Some(earlier) = same_timer(&mut self.session, &item) {
            let id = item.id.clone();
            let item = Cron { seq: earlier.seq, ..item };
            let earlier = std::mem::replace(earlier, item).id;
            facts.extend(facts! { "queued": self.session.crons.len(), "replaced": earlier });
            self.log("replaced", Some(id.as_str()), Some(earlier.as_str()));
            return said(Code::Queued, format!("`{id}` waits in the place of `{earlier}`"), facts);
        }
        match make_room(&mut self.session, item.related) {
            (omitted, true) => self.append(item, omitted, facts),
            (omitted, false) => self.leave_out(item, omitted, facts),
        }
    }
}

/// The earlier firing of the same timer whose place a later one takes while both have to wait. One that was
/// taken keeps its place: its turn is about to begin.
fn same_timer<'s>(session: &'s mut Session, item: &Cron) -> Option<&'s mut Cron> {
    if item.related || !session.defers() {
        return None;
    }
    let is_same =
        |earlier: &&mut Cron| !earlier.related && earlier.taken.is_none() && earlier.task_id == item.task_id;
    session.crons.iter_mut().find(is_same)
}

/// Makes room for one more, and answers whether there is any. What belongs to the chain is never put out (O67).
fn make_room(session: &mut Session, related: bool) -> (Vec<Omitted>, bool) {
    let mut omitted = Vec::new();
    if session.defers() {
        let kept = if related { CRONS_UNRELATED_MAX } else { CRONS_UNRELATED_MAX - 1 };
        let waiting = session.crons.iter().filter(|item| !item.related && item.taken.is_none()).count();
        for _ in kept..waiting {
            omitted.extend(evict(&mut session.crons, |item| !item.related).map(Item::omission));
        }
    }
    while session.crons.len() >= CRONS_MAX {
        let Some(item) = evict(&mut session.crons, |item| !item.related) else {
            return (omitted, false);
        };
        omitted.push(item.omission());
    }
    (omitted, true)
}
