//! `inspect --session`: who waits for whom, what is under way, and what a claim would be answered now, and why.

mod text;

use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::cli::InspectArgs;
use crate::protocol::codes::Code;
use crate::protocol::guard::Moment;
use crate::protocol::guard::background::Task;
use crate::protocol::guard::queues::{Cron, Gap, Notification, Taken};
use crate::protocol::guard::session::{BUDGET, BootTime, Gate, Message, Prompt, Session, Ticket, Void};
use crate::protocol::guard::told::{obstacles, would_claim};
use crate::protocol::ids::{Name, Timestamp};
use crate::protocol::row::ProcessRef;
use crate::protocol::state::shell_word;
use crate::protocol::verdict::Refusal;
use crate::state::{Access, StateError, Store, chain};

use super::context::{Context, age_seconds};
use super::evidence;
use super::failure::Failure;

/// What lifts a suspension (O41).
const LIFTS: &str = "a new ordinary prompt that runs, and nothing else";

pub(crate) fn run(context: &Context, args: &InspectArgs, name: &Name) -> Result<Answer, Failure> {
    let store = match Store::open(&context.root, Access::Read) {
        Ok(store) => store,
        Err(StateError::NoRoot { .. }) => return Err(no_session(name)),
        Err(error) => return Err(error.into()),
    };
    let document = store.read_session(name)?.ok_or_else(|| no_session(name))?;
    let look = Look { context, store: &store, session: &document.session, boot: context.boot() };
    let mut fields = look.about();
    fields.extend(crate::facts! {
        "revision": document.revision, "path": store.session_path(name).display().to_string(),
    });
    if document.newer {
        fields.insert("newerVersion".to_owned(), json!(true));
    }
    fields.extend(look.queue());
    fields.extend(look.chain());
    fields.extend(look.beside());
    fields.extend(look.waiting());
    fields.extend(look.would_be_answered()?);
    if args.explain {
        fields.extend(look.behind());
    }
    if args.history {
        look.history(&mut fields);
    }
    let state = document.session.state.as_str();
    let message = format!("session `{name}` is {state}, generation {}", document.session.generation);
    let mut answer = Answer::new(context.command, Code::Ok, message);
    answer.body = Some(text::one(&store.root().display().to_string(), &fields));
    answer.fields = fields;
    Ok(answer)
}

fn no_session(name: &Name) -> Failure {
    let refusal = Refusal::new(Code::NoSession, format!("there is no session `{name}` in this root"))
        .fact("sessionId", name.as_str())
        .hint(format!("open it: lychgate session open {}", shell_word(name.as_str())));
    Failure::Refused(Box::new(refusal))
}

struct Look<'a> {
    context: &'a Context,
    store: &'a Store,
    session: &'a Session,
    boot: BootTime,
}

impl Look<'_> {
    fn age(&self, at: &Timestamp) -> Option<i64> {
        age_seconds(at, &self.context.now())
    }

    /// How long until a deadline; 0 if it is over.
    fn left_ms(&self, deadline: &BootTime) -> u64 {
        if deadline.is_over(&self.boot) { 0 } else { deadline.ms.saturating_sub(self.boot.ms) }
    }

    /// A process, and whether it lives.
    fn process(&self, process: Option<&ProcessRef>) -> Value {
        process.map_or(Value::Null, |process| {
            let (life, why) = evidence::process_life(self.context, self.store, process);
            json!({ "pid": process.pid, "alive": life.as_str(), "why": why })
        })
    }

    fn about(&self) -> Map<String, Value> {
        let session = self.session;
        crate::facts! {
            "sessionId": session.session_id, "generation": session.generation,
            "state": session.state.as_str(), "guard": session.guard, "withoutQueue": session.without_queue,
            "cwd": session.cwd, "plan": session.plan, "seq": session.seq,
            "createdAt": session.created_at, "updatedAt": session.updated_at,
        }
    }

    /// The prompts in their order, who has yielded to whom, and what is being sent.
    fn queue(&self) -> Map<String, Value> {
        let session = self.session;
        let queued = session.first_queued().map(|prompt| &prompt.prompt_id);
        let wait = session.wait.as_ref().map(|wait| {
            json!({
                "promptId": wait.prompt_id, "waitsFor": queued, "seq": wait.seq, "since": wait.at,
                "ageSeconds": self.age(&wait.at),
            })
        });
        crate::facts! {
            "prompts": session.prompts.iter().map(|prompt| self.prompt(prompt)).collect::<Vec<_>>(),
            "wait": wait,
            "tickets": session.tickets.iter().map(|ticket| self.ticket(ticket)).collect::<Vec<_>>(),
        }
    }

    fn prompt(&self, prompt: &Prompt) -> Value {
        json!({
            "promptId": prompt.prompt_id, "alias": prompt.alias, "kind": prompt.kind.as_str(),
            "state": prompt.state.as_str(), "seq": prompt.seq, "at": prompt.at,
            "ageSeconds": self.age(&prompt.at), "startedAt": prompt.started_at,
            "textBytes": prompt.text.as_ref().map(String::len), "fromHook": prompt.from_hook,
            "handedOn": prompt.handed_on, "process": self.process(prompt.process.as_ref()),
        })
    }

    fn ticket(&self, ticket: &Ticket) -> Value {
        json!({
            "ticket": ticket.ticket_id, "promptId": ticket.prompt_id, "generation": ticket.generation,
            "chain": ticket.chain, "attempt": ticket.attempt, "seq": ticket.seq, "at": ticket.at,
            "ageSeconds": self.age(&ticket.at), "leftMs": self.left_ms(&ticket.deadline),
            "stage": ticket.stage, "void": ticket.void.map(Void::as_str),
            "process": self.process(ticket.process.as_ref()),
        })
    }

    fn chain(&self) -> Map<String, Value> {
        let chain = &self.session.chain;
        let suspended = chain.suspended.as_ref().map(|suspended| {
            json!({
                "cause": suspended.cause.as_str(), "note": suspended.note, "since": suspended.at,
                "seq": suspended.seq, "lifts": LIFTS,
            })
        });
        crate::facts! {
            "chain": json!({
                "id": chain.id, "armed": chain.armed, "unfinishedCount": chain.unfinished,
                "attempts": chain.attempts, "maxAttempts": BUDGET, "unsent": chain.unsent,
                "retryPaused": chain.retry_paused, "awaiting": chain.awaiting,
                "exhaustionReported": chain.exhaustion_reported, "suspended": suspended,
            }),
        }
    }

    /// What lies beside the turn: texts, work in the background, a move, refusals.
    fn beside(&self) -> Map<String, Value> {
        let session = self.session;
        let task = |task: &Task| {
            json!({
                "taskId": task.task_id, "kind": task.kind.as_str(), "parent": task.parent,
                "owner": task.owner, "related": session.is_related_task(&task.task_id), "at": task.at,
                "ageSeconds": self.age(&task.at), "process": self.process(task.process.as_ref()),
            })
        };
        let gate = |gate: &Gate| {
            json!({
                "from": gate.from, "to": gate.to, "since": gate.at, "leftMs": self.left_ms(&gate.deadline),
                "process": self.process(gate.process.as_ref()),
            })
        };
        crate::facts! {
            "inbox": messages(&session.inbox), "kept": messages(&session.kept),
            "tasks": session.tasks.iter().map(task).collect::<Vec<_>>(),
            "gate": session.gate.as_ref().map(gate), "question": session.question,
            "blocks": session.blocks, "refused": session.refused,
        }
    }

    /// What waits for a turn, and what had no place.
    fn waiting(&self) -> Map<String, Value> {
        let session = self.session;
        let taken = |taken: &Taken| {
            json!({
                "at": taken.at, "leftMs": self.left_ms(&taken.deadline),
                "process": self.process(taken.process.as_ref()),
            })
        };
        let notification = |item: &Notification| {
            json!({
                "id": item.id, "taskId": item.task_id, "kind": item.kind, "status": item.status,
                "related": item.related, "seq": item.seq, "at": item.at, "timesTaken": item.times_taken,
                "taken": item.taken.as_ref().map(taken),
            })
        };
        let cron = |item: &Cron| {
            json!({
                "id": item.id, "taskId": item.task_id, "wakeup": item.wakeup, "related": item.related,
                "seq": item.seq, "at": item.at, "timesTaken": item.times_taken,
                "taken": item.taken.as_ref().map(taken),
            })
        };
        let gap = |gap: &Gap| {
            json!({
                "gapId": gap.gap_id, "queue": gap.queue, "omitted": gap.omitted.len() as u64 + gap.more,
                "related": gap.related, "at": gap.at,
            })
        };
        crate::facts! {
            "notifications": session.notifications.iter().map(notification).collect::<Vec<_>>(),
            "crons": session.crons.iter().map(cron).collect::<Vec<_>>(),
            "gaps": session.gaps.iter().map(gap).collect::<Vec<_>>(),
        }
    }

    /// From the very rules a claim asks.
    fn would_be_answered(&self) -> Result<Map<String, Value>, Failure> {
        let life = |process: &ProcessRef| evidence::process_life(self.context, self.store, process).0;
        let (call, fresh) = (self.context.call(), self.context.fresh()?);
        let moment = Moment { call: &call, boot: &self.boot, fresh: &fresh, life: &life };
        let (running, ownerless) = would_claim(self.session, &moment);
        let obstacles: Vec<Value> = obstacles(self.session)
            .into_iter()
            .map(|(what, lifts)| json!({ "what": what, "lifts": lifts }))
            .collect();
        Ok(crate::facts! {
            "claim": json!({
                "running": running.map(|would| would.value()), "ownerless": ownerless.value(),
            }),
            "obstacles": obstacles,
        })
    }

    /// What `--explain` adds: what is over, and what hooks told.
    fn behind(&self) -> Map<String, Value> {
        let session = self.session;
        crate::facts! {
            "endedPrompts": session.ended_prompts, "endedTickets": session.ended_tickets,
            "released": session.released, "baseline": session.chain.baseline,
            "related": session.chain.related, "marks": session.marks, "events": session.events,
        }
    }

    fn history(&self, fields: &mut Map<String, Value>) {
        let events = self.store.session_archives(self.session).map(|mut events| {
            events.extend(self.session.history.events.iter().cloned());
            events
        });
        match events {
            Ok(events) => fields.insert("history".to_owned(), json!(events)),
            Err(error) => fields.insert("historyError".to_owned(), json!(chain(&error))),
        };
    }
}

/// Texts without what they say: that is the person's, and lies in the record.
fn messages(messages: &[Message]) -> Vec<Value> {
    let told = messages.iter().map(|message| {
        json!({
            "id": message.message_id, "kind": message.kind, "textBytes": message.text.len(),
            "seq": message.seq, "at": message.at,
        })
    });
    told.collect()
}
