//! `hook AGENT`: an agent's hook call becomes the requests of one commit, and its answer the agent's own words.
//!
//! This is the part that works; `supervisor` answers the agent whatever becomes of it.

use std::io::Read as _;

use sha2::{Digest as _, Sha256};

use crate::answer::Answer;
use crate::cli::{HookAgentArgs, OuterVerdict, Worker};
use crate::commands::context::Context;
use crate::commands::failure::Failure;
use crate::commands::guard::act_unremembered;
use crate::dialect::{self, Agent, Event, Kind, Reply, Start, Todo};
use crate::protocol::codes::Code;
use crate::protocol::guard::background::{Task, TaskKind};
use crate::protocol::guard::request::{
    Background, External, HookPrompt, HookStop, Open, PromptName, Request, TodoChange, TodoList,
};
use crate::protocol::guard::session::PromptEnd;
use crate::protocol::guard::todo;
use crate::protocol::ids::{Name, PromptId, TicketId, Timestamp};
use crate::protocol::row::Extra;
use crate::state::hex;

pub(crate) fn run(context: &Context, agent: Agent, args: &HookAgentArgs) -> Result<Answer, Failure> {
    // Without a supervisor nobody keeps the exit status away from the agent, so this is none of its calls.
    let worker = context.worker.clone().unwrap_or(Worker {
        started_ms: context.boot().ms,
        heard: true,
        trouble: None,
    });
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("standard input: {error}")))?;
    let event = dialect::read(agent, args.event.as_deref(), &bytes)
        .map_err(|unusable| Failure::usage(format!("the event of {agent} cannot be used: {unusable}")))?;
    let told = Told {
        agent,
        guard: args.guard && dialect::has_todo_list(agent) && worker.heard,
        external: outer(args),
        digest: digest(&bytes),
        started_ms: worker.started_ms,
        now: context.now(),
    };
    let session = Name::parse(&format!("{agent}:{}", event.session))
        .map_err(|error| Failure::usage(format!("the session of the event: {error}")))?;
    let requests = told.requests(&event);
    let reply = if requests.is_empty() && (event.plan.is_none() || event.sub_agent.is_some()) {
        Reply::Nothing
    } else {
        reply(&act_unremembered(context, &session, &told.framed(&event, requests))?)
    };
    let words = dialect::print(agent, Some(&event), &reply);
    Ok(Answer::new(context.command, Code::Ok, "the event is noted").verbatim(words))
}

fn outer(args: &HookAgentArgs) -> Option<External> {
    match args.external? {
        OuterVerdict::Allow => Some(External::Allow),
        OuterVerdict::Block => {
            Some(External::Block(args.reason.clone().unwrap_or_else(|| "go on".to_owned())))
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    let mut digest = hex(&Sha256::digest(bytes));
    digest.truncate(32);
    digest
}

/// What is known of a hook call besides the event.
struct Told {
    agent: Agent,
    guard: bool,
    external: Option<External>,
    digest: String,
    started_ms: u64,
    now: Timestamp,
}

impl Told {
    /// The requests of an event, with those that go with every event around them.
    fn framed(&self, event: &Event, requests: Vec<Request>) -> Vec<Request> {
        let open = Open { guard: self.guard, cwd: event.cwd.clone(), in_passing: true, ..Open::default() };
        let plan = event.plan.filter(|_| event.sub_agent.is_none()).map(Request::HookPlan);
        let seen = Request::HookSeen(name_of(&event.kind).to_owned(), self.started_ms);
        let mut all = vec![Request::Open(open), seen];
        all.extend(plan);
        all.extend(requests);
        all
    }

    fn requests(&self, event: &Event) -> Vec<Request> {
        if let Some(sub_agent) = &event.sub_agent {
            let Ok(task) = Name::parse(&sub_agent.id) else { return Vec::new() };
            return match event.kind {
                Kind::SubAgentStarted => vec![Request::Background(Background::Start {
                    task,
                    kind: TaskKind::Agent,
                    parent: None,
                    owner: None,
                    process: None,
                    told_by_agent: true,
                })],
                Kind::SubAgentStopped => vec![Request::Background(Background::End(task))],
                // What a sub-agent does never acts for the main prompt.
                _ => Vec::new(),
            };
        }
        match &event.kind {
            Kind::Prompt { text, typed } => vec![Request::HookPrompt(self.prompt(event, text, *typed))],
            Kind::Stop { active, background, wakeups } => {
                let mut requests = self.view(background.as_deref(), wakeups.as_deref());
                requests.push(Request::HookStop(HookStop {
                    alias: event.turn.clone(),
                    active: *active,
                    external: self.external.clone(),
                    digest: self.digest.clone(),
                    started_ms: self.started_ms,
                    guard: self.guard,
                }));
                requests
            }
            Kind::StopFailed => vec![Request::HookTurnEnded(PromptEnd::Failed)],
            Kind::Interrupted => vec![Request::HookTurnEnded(PromptEnd::Aborted)],
            Kind::SessionStarted(Start::Startup | Start::Resume) => vec![Request::HookStarted],
            Kind::SessionStarted(Start::Clear) => vec![Request::HookCleared],
            Kind::SessionStarted(Start::Compact)
            | Kind::Other
            | Kind::SubAgentStarted
            | Kind::SubAgentStopped => Vec::new(),
            Kind::SessionEnded { .. } => vec![Request::Close],
            Kind::DirectoryChanged { to } => vec![Request::HookMoved(to.clone())],
            Kind::Todo(change) => self.todos(event, change),
            Kind::QuestionAsked { id } => vec![Request::HookQuestion(true, id.clone())],
            Kind::QuestionAnswered { id } => vec![Request::HookQuestion(false, id.clone())],
        }
    }

    fn prompt(&self, event: &Event, text: &str, typed: Option<bool>) -> HookPrompt {
        HookPrompt {
            alias: event.turn.clone(),
            ticket: dialect::ticket_in(text).and_then(|text| TicketId::parse(text).ok()),
            prompt: dialect::prompt_in(text).and_then(|text| PromptId::parse(text).ok()),
            typed,
            digest: self.digest.clone(),
            started_ms: self.started_ms,
            guard: self.guard,
        }
    }

    /// What lives in the background, as far as the agent said.
    fn view(&self, background: Option<&[dialect::Background]>, wakeups: Option<&[String]>) -> Vec<Request> {
        if background.is_none() && wakeups.is_none() {
            return Vec::new();
        }
        let live = |list: &[dialect::Background]| {
            list.iter().filter_map(|one| self.task(&one.id, kind_of(&one.kind))).collect()
        };
        let waking = |list: &[String]| list.iter().filter_map(|id| self.task(id, TaskKind::Wakeup)).collect();
        vec![Request::Background(Background::View {
            tasks: background.map(live),
            wakeups: wakeups.map(waking),
        })]
    }

    fn task(&self, id: &str, kind: TaskKind) -> Option<Task> {
        let task_id = Name::parse(id).ok()?;
        let at = self.now.clone();
        Some(Task {
            task_id,
            kind,
            parent: None,
            owner: None,
            at,
            process: None,
            told_by_agent: true,
            extra: Extra::new(),
        })
    }

    fn todos(&self, event: &Event, change: &Todo) -> Vec<Request> {
        let prompt = event.turn.clone().map(PromptName);
        match change {
            Todo::List(list) => match todo::parse(list) {
                Ok(items) => {
                    let only_alone = !self.agent.tells_whose_list();
                    vec![Request::Todo(TodoList { items, prompt, untrusted: None, only_alone })]
                }
                // A list that is not well-formed is nobody's list (O45).
                Err(_) => Vec::new(),
            },
            Todo::Item { id, status, .. } => {
                let done = match status.as_str() {
                    "pending" | "in_progress" => Some(false),
                    "completed" => Some(true),
                    "deleted" => None,
                    _ => return Vec::new(),
                };
                vec![Request::TodoItem(TodoChange { id: id.clone(), done, prompt })]
            }
        }
    }
}

fn kind_of(word: &str) -> TaskKind {
    match word {
        "shell" | "bash" | "command" => TaskKind::Shell,
        "monitor" => TaskKind::Monitor,
        "workflow" => TaskKind::Workflow,
        _ => TaskKind::Agent,
    }
}

/// What the agent is told.
fn reply(answer: &Answer) -> Reply {
    let field = |name: &str| answer.fields.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    match answer.code {
        Code::Continue | Code::UserInput if !field("text").trim().is_empty() => {
            let ticket = field("ticket");
            let text = field("text");
            let text = if ticket.is_empty() { text.to_owned() } else { dialect::with_ticket(text, ticket) };
            Reply::Continue { text }
        }
        _ => Reply::Nothing,
    }
}

/// The event's name for `hook doctor`.
fn name_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Prompt { .. } => "prompt",
        Kind::Stop { .. } => "stop",
        Kind::StopFailed => "stop-failed",
        Kind::Interrupted => "interrupted",
        Kind::SessionStarted(_) => "session-started",
        Kind::SessionEnded { .. } => "session-ended",
        Kind::DirectoryChanged { .. } => "directory-changed",
        Kind::Todo(_) => "todo",
        Kind::QuestionAsked { .. } => "question-asked",
        Kind::QuestionAnswered { .. } => "question-answered",
        Kind::SubAgentStarted => "sub-agent-started",
        Kind::SubAgentStopped => "sub-agent-stopped",
        Kind::Other => "other",
    }
}
