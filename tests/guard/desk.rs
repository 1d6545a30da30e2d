//! One session, a clock and processes, and the rules of the guard asked one call after the other.

use lychgate::protocol::codes::Code;
use lychgate::protocol::guard::request::{
    Claim, Drain, EndTurn, External, HookPrompt, HookStop, Open, PromptName, Request, Say, Submit, TICKET_MS,
    TodoList,
};
use lychgate::protocol::guard::session::{BootTime, MessageKind, PromptEnd, PromptKind, Session, TicketEnd};
use lychgate::protocol::guard::{Done, Moment, judge};
use lychgate::protocol::ids::{Fresh, Name, PromptId, RequestId, TicketId, Timestamp};
use lychgate::protocol::row::ProcessRef;
use lychgate::protocol::verdict::{Call, Facts, OwnerLife};

/// What a call was answered.
#[derive(Debug, Clone)]
pub struct Told {
    pub code: Code,
    pub facts: Facts,
    pub changed: bool,
    pub message: String,
}

impl Told {
    /// Asserts the code.
    #[track_caller]
    pub fn is(self, code: &str) -> Self {
        assert_eq!(self.code.as_str(), code, "{}: {:?}", self.message, self.facts);
        self
    }

    /// A fact as text.
    #[track_caller]
    pub fn text(&self, key: &str) -> String {
        match self.facts.get(key) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => panic!("there is no `{key}` in {:?}", self.facts),
        }
    }

    /// The prompt it is about.
    #[track_caller]
    pub fn prompt(&self) -> PromptId {
        PromptId::parse(&self.text("promptId")).unwrap()
    }

    /// The ticket it grants.
    #[track_caller]
    pub fn ticket(&self) -> TicketId {
        TicketId::parse(&self.text("ticket")).unwrap()
    }
}

/// The desk.
#[derive(Debug, Clone)]
pub struct Desk {
    pub session: Option<Session>,
    pub boot: BootTime,
    pub dead: Vec<u32>,
    calls: u64,
}

impl Desk {
    /// No session yet.
    pub fn new() -> Self {
        let boot = BootTime { boot_id: Some("boot-1".to_owned()), ms: 1_000_000 };
        Self { session: None, boot, dead: Vec::new(), calls: 0 }
    }

    /// An open session with the guard on.
    pub fn open() -> Self {
        let mut desk = Self::new();
        desk.ask(Request::Open(Open { guard: true, ..Open::default() })).is("opened");
        desk
    }

    /// The session.
    pub fn now(&self) -> &Session {
        self.session.as_ref().unwrap()
    }

    /// Time passes.
    pub fn passes(&mut self, ms: u64) {
        self.boot = self.boot.after(ms);
    }

    pub fn judge(&mut self, requests: &[Request]) -> Done {
        self.calls += 1;
        let call = Call {
            command: "test",
            request_id: RequestId::parse(&format!("r{}", self.calls)).unwrap(),
            now: Timestamp::parse("2026-01-02T03:04:05Z").unwrap(),
        };
        let fresh = Fresh::parse(&format!("{:016x}", 0xa000 + self.calls)).unwrap();
        let life = |process: &ProcessRef| {
            if self.dead.contains(&process.pid) { OwnerLife::Dead } else { OwnerLife::Alive }
        };
        let moment = Moment { call: &call, boot: &self.boot, fresh: &fresh, life: &life };
        judge(self.session.as_ref(), &Name::parse("s").unwrap(), requests, &moment)
    }

    /// One call with several requests.
    pub fn ask_all(&mut self, requests: &[Request]) -> Told {
        let done = self.judge(requests);
        let changed = done.session.is_some();
        if let Some(session) = done.session {
            self.session = Some(*session);
        }
        match done.answer {
            Ok(said) => Told { code: said.code, facts: said.facts, changed, message: said.message },
            Err(refusal) => {
                Told { code: refusal.code, facts: refusal.facts, changed, message: refusal.message }
            }
        }
    }

    /// One call.
    pub fn ask(&mut self, request: Request) -> Told {
        self.ask_all(&[request])
    }

    /// Submits an ordinary prompt.
    pub fn submit(&mut self) -> Told {
        self.submit_as(PromptKind::Ordinary)
    }

    /// Submits a prompt of a kind.
    pub fn submit_as(&mut self, kind: PromptKind) -> Told {
        self.ask(Request::Submit(Submit { alias: None, kind, text: None, process: None }))
    }

    /// Submits an ordinary prompt that runs at once.
    #[track_caller]
    pub fn running(&mut self) -> PromptId {
        let told = self.submit().is("submitted");
        assert_eq!(told.text("state"), "running");
        told.prompt()
    }

    pub fn start(&mut self, prompt: &PromptId) -> Told {
        self.ask(Request::Start(named(prompt), None))
    }

    pub fn finish(&mut self, prompt: &PromptId, end: PromptEnd) -> Told {
        self.ask(Request::Finish(named(prompt), end))
    }

    pub fn remove(&mut self, prompt: &PromptId) -> Told {
        self.ask(Request::Remove(named(prompt)))
    }

    /// Claims for a prompt.
    pub fn claim(&mut self, prompt: &PromptId) -> Told {
        self.ask(Request::Claim(Claim { prompt: Some(named(prompt)), ..automatic() }))
    }

    /// Claims for no prompt.
    pub fn claim_automatic(&mut self) -> Told {
        self.ask(Request::Claim(automatic()))
    }

    pub fn end(&mut self, ticket: &TicketId, end: TicketEnd) -> Told {
        self.ask(Request::EndTicket(ticket.clone(), end, None))
    }

    pub fn release(&mut self, prompt: &PromptId) -> Told {
        self.ask(Request::Release(prompt.clone()))
    }

    /// The main agent writes a list with so many unfinished items.
    pub fn todo(&mut self, unfinished: usize) -> Told {
        let items = (0..unfinished).map(|n| (n.to_string(), false)).collect();
        self.ask(Request::Todo(TodoList { items, prompt: None, untrusted: None, only_alone: false }))
    }

    pub fn say(&mut self, id: &str, text: &str) -> Told {
        let id = Some(Name::parse(id).unwrap());
        self.ask(Request::Say(Say { id, kind: MessageKind::User, text: text.to_owned() }))
    }

    pub fn drain(&mut self) -> Told {
        self.ask(Request::Drain(Drain::default()))
    }

    pub fn end_turn(&mut self) -> Told {
        self.end_turn_with(None)
    }

    pub fn end_turn_with(&mut self, external: Option<External>) -> Told {
        self.ask(Request::EndTurn(EndTurn { prompt: None, external, for_ms: TICKET_MS, process: None }))
    }

    /// The agent's hook tells of a person's prompt.
    pub fn hook_prompt(&mut self, alias: &str) -> Told {
        self.ask(Request::HookPrompt(HookPrompt {
            alias: Some(alias.to_owned()),
            digest: format!("prompt {alias}"),
            started_ms: self.boot.ms,
            guard: true,
            ..HookPrompt::default()
        }))
    }

    /// The agent's hook tells of a stop.
    pub fn hook_stop(&mut self, digest: &str) -> Told {
        self.ask(Request::HookStop(HookStop {
            digest: digest.to_owned(),
            started_ms: self.boot.ms,
            guard: true,
            ..HookStop::default()
        }))
    }
}

/// A claim for no prompt.
pub fn automatic() -> Claim {
    Claim {
        prompt: None,
        for_ms: TICKET_MS,
        process: None,
        attempt: None,
        chain: None,
        woken_by_cancelled: false,
    }
}

/// The name of a prompt.
pub fn named(prompt: &PromptId) -> PromptName {
    PromptName(prompt.to_string())
}
