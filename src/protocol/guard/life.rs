//! A session's life: opened, restored, planned, suspended, closed (O37-O46, O64-O66).

use super::Answered;
use super::chain::{Cause, Chain};
use super::request::Open;
use super::session::{PromptEnd, Session, SessionState, Void};
use super::work::{Work, said};
use crate::protocol::codes::Code;
use crate::protocol::history::History;
use crate::protocol::ids::{Name, Timestamp};
use crate::protocol::requests::RequestLog;
use crate::protocol::row::Extra;
use crate::protocol::verdict::Facts;

impl Session {
    /// A session that was never opened.
    pub(super) fn new(name: &Name, open: &Open, now: &Timestamp) -> Self {
        Self {
            session_id: name.clone(),
            generation: 1,
            state: SessionState::Open,
            guard: open.guard,
            without_queue: open.without_queue,
            cwd: open.cwd.clone(),
            plan: false,
            seq: 0,
            prompts: Vec::new(),
            ended_prompts: Vec::new(),
            chain: Chain::default(),
            wait: None,
            tickets: Vec::new(),
            ended_tickets: Vec::new(),
            released: std::collections::BTreeSet::new(),
            todos: Vec::new(),
            inbox: Vec::new(),
            kept: Vec::new(),
            acknowledged: Vec::new(),
            tasks: Vec::new(),
            ended_tasks: Vec::new(),
            marks: Vec::new(),
            notifications: Vec::new(),
            notified: Vec::new(),
            crons: Vec::new(),
            fired: Vec::new(),
            gaps: Vec::new(),
            gate: None,
            question: None,
            blocks: 0,
            refused: std::collections::BTreeMap::new(),
            events: std::collections::BTreeMap::new(),
            last_stop: None,
            last_prompt: None,
            created_at: now.clone(),
            updated_at: now.clone(),
            requests: RequestLog::default(),
            history: History::default(),
            extra: Extra::new(),
        }
    }
}

impl Work<'_> {
    /// `session open` of a session that there was before.
    pub(super) fn open(&mut self, request: &Open) -> Answered {
        if request.in_passing {
            return said(Code::AlreadyOpen, "known", Facts::new());
        }
        if self.session.state != SessionState::Closed {
            let message = format!("session `{}` is open", self.session.session_id);
            return said(Code::AlreadyOpen, message, self.life_facts());
        }
        self.reopen();
        self.session.guard = request.guard;
        self.session.without_queue = request.without_queue;
        if request.cwd.is_some() {
            self.session.cwd.clone_from(&request.cwd);
        }
        let message =
            format!("session `{}` is open, generation {}", self.session.session_id, self.session.generation);
        said(Code::Opened, message, self.life_facts())
    }

    /// Another generation: nothing of the one before is trusted, and nothing a person gave it is lost.
    pub(super) fn reopen(&mut self) {
        self.session.generation += 1;
        self.session.state = SessionState::Open;
        self.session.plan = false;
        self.suspend(Cause::Reopened, None);
        self.log("opened", None, None);
    }

    pub(super) fn opened(&mut self) -> Answered {
        let id = self.next_seq();
        self.session.chain.id = id;
        self.log("opened", None, None);
        let message = format!("session `{}` is open", self.session.session_id);
        said(Code::Opened, message, self.life_facts())
    }

    fn life_facts(&self) -> Facts {
        crate::facts! {
            "generation": self.session.generation, "state": self.session.state.as_str(),
            "guard": self.session.guard, "cwd": self.session.cwd,
        }
    }

    /// `session close`: late results are refused from now on (O64). Prompts that wait, and texts, stay.
    pub(super) fn close(&mut self) -> Answered {
        if self.session.state == SessionState::Closed {
            let message = format!("session `{}` was closed", self.session.session_id);
            return said(Code::AlreadyClosed, message, self.life_facts());
        }
        self.end_generation(Some(Cause::Closed));
        self.session.state = SessionState::Closed;
        self.session.gate = None;
        self.log("closed", None, None);
        let mut facts = self.life_facts();
        facts.insert("queuedPrompts".to_owned(), self.session.prompts.len().into());
        facts.insert("keptTexts".to_owned(), (self.session.inbox.len() + self.session.kept.len()).into());
        said(Code::Closed, format!("session `{}` is closed", self.session.session_id), facts)
    }

    /// What no later generation takes over: the running prompt, trust, the wait, what is being sent.
    fn end_generation(&mut self, cause: Option<Cause>) {
        for ticket in &mut self.session.tickets {
            ticket.void = Some(Void::Closed);
        }
        self.session.question = None;
        self.session.marks.clear();
        match cause {
            Some(cause) => self.suspend(cause, None),
            None => self.drop_trust(),
        }
        if let Some(running) = self.session.running().map(|prompt| prompt.prompt_id.clone()) {
            self.end_running(&running, PromptEnd::Abandoned);
        }
    }

    /// Trust is gone, the budget and a suspension stay (O46).
    pub(super) fn drop_trust(&mut self) {
        let suspended = self.session.chain.suspended.take();
        self.session.chain.clear_trust();
        self.session.chain.suspended = suspended;
        self.session.wait = None;
    }

    /// `session restore --begin|--end` (O66).
    pub(super) fn restore(&mut self, begin: bool) -> Answered {
        if begin {
            self.session.generation += 1;
            self.end_generation(None);
            self.session.state = SessionState::Restoring;
            self.log("restoring", None, None);
            let message = format!("session `{}` is being restored", self.session.session_id);
            return said(Code::Restoring, message, self.life_facts());
        }
        if self.session.state != SessionState::Restoring {
            self.refuse_unless_open()?;
            let message = format!("session `{}` is open", self.session.session_id);
            return said(Code::AlreadyOpen, message, self.life_facts());
        }
        self.session.state = SessionState::Open;
        self.at_boundary();
        self.log("restored", None, None);
        said(
            Code::Restored,
            format!("session `{}` is open again", self.session.session_id),
            self.life_facts(),
        )
    }

    /// `session plan on|off` (O44).
    pub(super) fn plan(&mut self, on: bool) -> Answered {
        self.must_not_be_over()?;
        self.session.plan = on;
        if on {
            self.suspend(Cause::Plan, None);
            said(Code::PlanOn, "the agent plans", crate::facts! { "plan": true })
        } else {
            said(Code::PlanOff, "the agent may act again", crate::facts! { "plan": false })
        }
    }

    /// `session suspend`: a person presses Stop. It is heard in every state but a closed one.
    pub(super) fn suspend_asked(&mut self, note: &str) -> Answered {
        self.must_not_be_over()?;
        self.suspend(Cause::Asked, Some(note));
        let facts = match &self.session.chain.suspended {
            Some(s) => {
                crate::facts! { "cause": s.cause.as_str(), "note": s.note, "since": s.at, "seq": s.seq }
            }
            None => Facts::new(),
        };
        said(Code::Suspended, "nothing automatic goes on until an ordinary prompt runs", facts)
    }
}
