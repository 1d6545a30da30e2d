//! The queue of prompts: a person's word is never overtaken, and each prompt has one end (O2, O16, O72, O73).

use super::Answered;
use super::chain::{Cause, Chain};
use super::request::{PromptName, Submit};
use super::session::{
    ENDED_MAX, EndedPrompt, PROMPTS_MAX, Prompt, PromptEnd, PromptKind, PromptState, SessionState, Void,
    on_disk,
};
use super::work::{Work, refused, said};
use crate::protocol::codes::Code;
use crate::protocol::ids::PromptId;
use crate::protocol::row::{Extra, ProcessRef};
use crate::protocol::verdict::{Facts, Refusal};

/// Bytes of text that a session keeps at most, of all kinds together: its record is written whole every time.
pub(super) const TEXT_BYTES_MAX: usize = 4 << 20;

impl Work<'_> {
    /// Whether the session takes part in anything: else why not.
    pub(super) fn refuse_unless_open(&self) -> Result<(), Box<Refusal>> {
        let id = &self.session.session_id;
        match self.session.state {
            SessionState::Open => Ok(()),
            SessionState::Closed => self.must_not_be_over(),
            SessionState::Restoring => Err(Box::new(
                Refusal::new(Code::SessionRestoring, format!("session `{id}` is being restored"))
                    .hint("ask again when whoever restores it has said `session restore --end`"),
            )),
        }
    }

    /// A prompt is admitted while nothing of the session is being moved (O62).
    fn refuse_while_moving(&self, admitted: Option<u64>) -> Result<(), Box<Refusal>> {
        match &self.session.gate {
            Some(gate) if admitted.is_none_or(|seq| seq > gate.seq) => Err(Box::new(
                Refusal::new(
                    Code::Relocating,
                    format!("session `{}` moves to `{}` since {}", self.session.session_id, gate.to, gate.at),
                )
                .fact("to", gate.to.as_str())
                .hint("ask again when the move is committed or aborted"),
            )),
            _ => Ok(()),
        }
    }

    /// A session's record is written whole every time, and has a bound.
    pub(super) fn refuse_more_text(&self, text: Option<&str>) -> Result<(), Box<Refusal>> {
        let bytes = text.map_or(0, on_disk);
        let held = self.session.text_bytes();
        if bytes == 0 || held.saturating_add(bytes) <= TEXT_BYTES_MAX {
            return Ok(());
        }
        let message = format!(
            "session `{}` keeps {held} bytes of texts already, and no more than {TEXT_BYTES_MAX}",
            self.session.session_id
        );
        Err(Box::new(
            Refusal::new(Code::QueueFull, message).fact("limit", TEXT_BYTES_MAX).hint(
                "acknowledge what has arrived (`drain --ack`, `notify ack`, `gaps --ack`) and try again",
            ),
        ))
    }

    /// `prompt submit`.
    pub(super) fn submit(&mut self, request: &Submit) -> Answered {
        self.refuse_unless_open()?;
        if let Some(alias) = &request.alias {
            let name = PromptName(alias.clone());
            if let Some(prompt) = self.session.prompt(&name) {
                let message = format!("prompt `{alias}` is in the queue as {}", prompt.prompt_id);
                return said(Code::AlreadySubmitted, message, about(prompt));
            }
            if let Some(ended) = self.session.ended_prompt(&name) {
                return refused(over(ended));
            }
        }
        self.refuse_while_moving(None)?;
        self.refuse_more_text(request.text.as_deref())?;
        let pending = self.session.prompts.len();
        if pending >= PROMPTS_MAX {
            let message = format!("{pending} prompts are in the queue, and {PROMPTS_MAX} are the most");
            return refused(
                Refusal::new(Code::QueueFull, message)
                    .fact("limit", PROMPTS_MAX)
                    .fact("pendingCount", pending)
                    .fact("retryable", true)
                    .hint("nothing was kept: submit it again when one has ended"),
            );
        }
        let is_free = self.session.running().is_none()
            && self.session.first_queued().is_none()
            && self.session.tickets.is_empty();
        let id = self.add_prompt(request, false);
        self.log("prompt-submitted", Some(id.as_str()), None);
        if is_free {
            self.run_prompt(&id, request.process.clone());
        }
        let prompt = self.session.prompt(&PromptName(id.to_string()));
        let state = prompt.map_or("queued", |prompt| prompt.state.as_str());
        let facts = prompt.map(about).unwrap_or_default();
        said(Code::Submitted, format!("prompt {id} is {state}"), facts)
    }

    /// Puts a prompt at the end of the queue.
    pub(super) fn add_prompt(&mut self, request: &Submit, from_hook: bool) -> PromptId {
        let id = self.moment.fresh.prompt();
        let seq = self.next_seq();
        self.session.prompts.push(Prompt {
            prompt_id: id.clone(),
            alias: request.alias.clone(),
            kind: request.kind,
            state: PromptState::Queued,
            text: request.text.clone(),
            from_hook,
            handed_on: false,
            seq,
            at: self.moment.call.now.clone(),
            started_at: None,
            process: request.process.clone(),
            extra: Extra::new(),
        });
        id
    }

    /// `prompt start`.
    pub(super) fn start(&mut self, name: &PromptName, process: Option<&ProcessRef>) -> Answered {
        self.refuse_unless_open()?;
        let prompt = self.find(name)?.clone();
        match prompt.state {
            PromptState::Removed => return refused(removed(&prompt)),
            PromptState::Running => {
                self.hand_on(&prompt.prompt_id);
                let message = format!("prompt {} runs already", prompt.prompt_id);
                return said(Code::AlreadyStarted, message, with_text(&prompt));
            }
            PromptState::Queued => {}
        }
        self.refuse_while_moving(Some(prompt.seq))?;
        self.refuse_out_of_turn(&prompt)?;
        self.run_prompt(&prompt.prompt_id, process.cloned());
        self.hand_on(&prompt.prompt_id);
        let facts = self.session.prompt(name).map(with_text).unwrap_or_default();
        said(Code::PromptStarted, format!("prompt {} runs now", prompt.prompt_id), facts)
    }

    fn hand_on(&mut self, id: &PromptId) {
        if let Some(prompt) = self.prompt_mut(id) {
            prompt.handed_on = true;
        }
    }

    /// A prompt runs when it is the first, nothing runs, and no automatic send is under way (O2).
    fn refuse_out_of_turn(&self, prompt: &Prompt) -> Result<(), Box<Refusal>> {
        let waits = |what: String| {
            Err(Box::new(
                Refusal::new(Code::PromptWaiting, format!("prompt {} waits: {what}", prompt.prompt_id))
                    .hint("ask again when that one has ended"),
            ))
        };
        if let Some(running) = self.session.running() {
            return waits(format!("prompt {} runs since {}", running.prompt_id, running.at));
        }
        if let Some(first) = self.session.first_queued()
            && first.prompt_id != prompt.prompt_id
        {
            return waits(format!("prompt {} was submitted before it", first.prompt_id));
        }
        let Some(ticket) = self.session.tickets.first() else { return Ok(()) };
        let left_ms = ticket.deadline.ms.saturating_sub(self.moment.boot.ms);
        let message = format!(
            "ticket {} was granted at {} and its holder has not said what became of it",
            ticket.ticket_id, ticket.at
        );
        Err(Box::new(
            Refusal::new(Code::TicketOpen, message)
                .fact("ticketId", ticket.ticket_id.as_str())
                .fact("leftMs", left_ms)
                .hint("it ends when its holder says so, is proven dead, or at its deadline; ask again"),
        ))
    }

    /// The prompt runs from now on, and a chain begins or goes on with it.
    pub(super) fn run_prompt(&mut self, id: &PromptId, process: Option<ProcessRef>) {
        let now = self.moment.call.now.clone();
        let Some(prompt) = self.prompt_mut(id) else { return };
        prompt.state = PromptState::Running;
        prompt.started_at = Some(now);
        if process.is_some() {
            prompt.process = process;
        }
        let kind = prompt.kind;
        self.session.wait = None;
        self.session.chain.awaiting = false;
        self.begin_chain(kind);
        self.log("prompt-started", Some(id.as_str()), None);
        self.prune();
    }

    /// Which chain a prompt runs in (O41, O42, O44).
    fn begin_chain(&mut self, kind: PromptKind) {
        self.session.question = None;
        if self.session.plan {
            return self.suspend(Cause::Plan, None);
        }
        match kind {
            PromptKind::Ordinary => self.new_chain(0),
            PromptKind::Retry | PromptKind::Continue if self.session.chain.is_trusted() => {
                self.session.chain.resume_trusted();
            }
            PromptKind::Retry | PromptKind::Continue => {
                let spent = self.session.chain.attempts;
                self.new_chain(spent);
                self.suspend(Cause::RetryWithoutTrust, None);
            }
        }
    }

    /// A fresh, unarmed chain. Only a person's ordinary prompt brings a fresh budget with it.
    pub(super) fn new_chain(&mut self, attempts: u32) {
        let id = self.next_seq();
        for ticket in &mut self.session.tickets {
            ticket.void.get_or_insert(Void::Superseded);
        }
        self.session.chain = Chain { id, attempts, ..Chain::default() };
        self.session.blocks = 0;
        self.session.refused.clear();
        self.at_boundary();
    }

    /// `prompt finish`.
    pub(super) fn finish(&mut self, name: &PromptName, end: PromptEnd) -> Answered {
        let prompt = match self.find(name) {
            Ok(prompt) => prompt.clone(),
            Err(refusal) => {
                return match self.session.ended_prompt(name) {
                    Some(ended) if ended.end == end => {
                        let message = format!("prompt {} has ended as {}", ended.prompt_id, end.as_str());
                        let facts = crate::facts! { "promptId": ended.prompt_id, "end": end.as_str() };
                        said(Code::AlreadyFinished, message, facts)
                    }
                    _ => Err(refusal),
                };
            }
        };
        match prompt.state {
            PromptState::Removed => return refused(removed(&prompt)),
            PromptState::Queued if matches!(end, PromptEnd::Completed | PromptEnd::Failed) => {
                let message = format!("prompt {} waits in the queue and never ran", prompt.prompt_id);
                let hint =
                    format!("take it out instead: lychgate prompt remove SESSION {}", prompt.prompt_id);
                return refused(Refusal::new(Code::PromptNotRunning, message).hint(hint));
            }
            PromptState::Queued => {
                self.take_out(&prompt.prompt_id);
                return said(
                    Code::PromptRemoved,
                    format!("prompt {} will not run", prompt.prompt_id),
                    with_text(&prompt),
                );
            }
            PromptState::Running => self.end_running(&prompt.prompt_id, end),
        }
        let mut facts = crate::facts! { "promptId": prompt.prompt_id, "end": end.as_str() };
        if let Some(next) = self.session.first_queued() {
            facts.insert("nextPromptId".to_owned(), next.prompt_id.as_str().into());
        }
        said(Code::PromptFinished, format!("prompt {} has ended: {}", prompt.prompt_id, end.as_str()), facts)
    }

    /// Ends the running prompt; the next one, if there is one, is promoted (O15).
    pub(super) fn end_running(&mut self, id: &PromptId, end: PromptEnd) {
        self.drop_prompt(id, end);
        match end {
            PromptEnd::Completed | PromptEnd::Removed => {}
            PromptEnd::Failed => self.session.chain.pause_for_retry(),
            PromptEnd::Aborted => self.suspend(Cause::Aborted, None),
            PromptEnd::Abandoned => self.suspend(Cause::Abandoned, None),
        }
        self.prune();
        if let Some(next) = self.session.first_queued() {
            let (next, kind) = (next.prompt_id.clone(), next.kind);
            self.session.wait = None;
            self.session.chain.awaiting = false;
            if kind == PromptKind::Ordinary {
                self.suspend(Cause::OrdinaryPending, None);
            }
            self.log("prompt-promoted", Some(next.as_str()), None);
        }
    }

    /// `prompt remove`.
    pub(super) fn remove(&mut self, name: &PromptName) -> Answered {
        let prompt = self.find(name)?.clone();
        match prompt.state {
            PromptState::Running => refused(
                Refusal::new(Code::PromptIsRunning, format!("prompt {} runs already", prompt.prompt_id))
                    .fact("removed", false)
                    .fact("reason", "already-started")
                    .hint("say how it ended: lychgate prompt finish SESSION PROMPT --as aborted"),
            ),
            PromptState::Removed => refused(removed(&prompt)),
            PromptState::Queued => {
                self.take_out(&prompt.prompt_id);
                let mut facts = crate::facts! { "removed": true };
                facts.extend(with_text(&prompt));
                said(Code::PromptRemoved, format!("prompt {} will not run", prompt.prompt_id), facts)
            }
        }
    }

    /// A queued prompt will not run. It keeps its place until it is the first; if it was the last that somebody
    /// yielded to, that wait is released in the same commit (O16).
    fn take_out(&mut self, id: &PromptId) {
        if let Some(prompt) = self.prompt_mut(id) {
            prompt.state = PromptState::Removed;
        }
        self.log("prompt-removed", Some(id.as_str()), None);
        self.prune();
        self.release_if_nothing_waits();
    }

    /// Places of removed prompts are given up once nothing runs and they are the first.
    pub(super) fn prune(&mut self) {
        while self.session.running().is_none()
            && let Some(first) = self.session.prompts.first().filter(|p| p.state == PromptState::Removed)
        {
            let id = first.prompt_id.clone();
            self.drop_prompt(&id, PromptEnd::Removed);
        }
    }

    fn drop_prompt(&mut self, id: &PromptId, end: PromptEnd) {
        let Some(index) = self.session.prompts.iter().position(|prompt| prompt.prompt_id == *id) else {
            return;
        };
        let prompt = self.session.prompts.remove(index);
        let (at, seq) = (self.moment.call.now.clone(), self.next_seq());
        let ended = EndedPrompt {
            prompt_id: prompt.prompt_id,
            alias: prompt.alias,
            end,
            at,
            seq,
            extra: Extra::new(),
        };
        self.session.ended_prompts.push(ended);
        let surplus = self.session.ended_prompts.len().saturating_sub(ENDED_MAX);
        self.session.ended_prompts.drain(..surplus);
        if end != PromptEnd::Removed {
            self.log("prompt-ended", Some(id.as_str()), Some(end.as_str()));
        }
    }

    pub(super) fn prompt_mut(&mut self, id: &PromptId) -> Option<&mut Prompt> {
        self.session.prompts.iter_mut().find(|prompt| prompt.prompt_id == *id)
    }

    fn find(&self, name: &PromptName) -> Result<&Prompt, Box<Refusal>> {
        if let Some(prompt) = self.session.prompt(name) {
            return Ok(prompt);
        }
        Err(Box::new(match self.session.ended_prompt(name) {
            Some(ended) => over(ended),
            None => Refusal::new(
                Code::NoSuchPrompt,
                format!("session `{}` has no prompt `{}`", self.session.session_id, name.0),
            )
            .fact("removed", false)
            .fact("reason", "not-found")
            .hint(format!(
                "lychgate inspect --session {} shows them",
                shell(self.session.session_id.as_str())
            )),
        }))
    }
}

fn shell(word: &str) -> String {
    crate::protocol::state::shell_word(word)
}

fn about(prompt: &Prompt) -> Facts {
    crate::facts! {
        "promptId": prompt.prompt_id, "alias": prompt.alias, "state": prompt.state.as_str(),
        "kind": prompt.kind.as_str(), "seq": prompt.seq,
    }
}

fn with_text(prompt: &Prompt) -> Facts {
    let mut facts = about(prompt);
    if let Some(text) = &prompt.text {
        facts.insert("text".to_owned(), text.as_str().into());
    }
    facts
}

fn over(ended: &EndedPrompt) -> Refusal {
    Refusal::new(
        Code::PromptEnded,
        format!("prompt {} has ended as {} at {}", ended.prompt_id, ended.end.as_str(), ended.at),
    )
    .fact("promptId", ended.prompt_id.as_str())
    .fact("end", ended.end.as_str())
}

fn removed(prompt: &Prompt) -> Refusal {
    Refusal::new(Code::PromptEnded, format!("prompt {} was removed", prompt.prompt_id))
        .fact("promptId", prompt.prompt_id.as_str())
        .fact("end", PromptEnd::Removed.as_str())
}
