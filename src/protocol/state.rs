//! What a row says about itself: questions every rule asks, and the few changes several rules share.

use serde_json::{Value, json};

use super::codes::Code;
use super::history::Event;
use super::ids::{AttemptId, Name, Timestamp};
use super::row::{ClosedBy, Extra, Origin, Row, Send, SendState, TaskStatus};
use super::verdict::{Call, Credentials, Refusal, Role};

/// How far the end of the current attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Admission is open.
    Open,
    /// Admission is shut; something is still owed.
    Closing,
    /// Nothing is owed any more.
    Settled,
}

impl Phase {
    /// The word in answers and in the history.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closing => "closing",
            Self::Settled => "settled",
        }
    }
}

impl Row {
    /// How far the end of the current attempt has come (rule 36: only `Settled` counts as settled).
    pub fn phase(&self) -> Phase {
        match &self.settlement {
            None => Phase::Open,
            Some(settlement) if settlement.settled.is_none() => Phase::Closing,
            Some(_) => Phase::Settled,
        }
    }

    /// Undischarged admitted turns of every attempt.
    pub fn turns(&self) -> impl Iterator<Item = &Send> {
        self.sends.iter().filter(|send| send.turn().is_some())
    }

    /// Undischarged admitted turns of the current attempt.
    pub fn own_turns(&self) -> impl Iterator<Item = &Send> {
        self.turns().filter(|send| Some(&send.attempt_id) == self.task_attempt_id.as_ref())
    }

    /// Undischarged admitted turns of earlier attempts.
    pub fn earlier_turns(&self) -> impl Iterator<Item = &Send> {
        self.turns().filter(|send| Some(&send.attempt_id) != self.task_attempt_id.as_ref())
    }

    /// Sends of the current attempt that are not admitted yet.
    pub fn waiting_sends(&self) -> impl Iterator<Item = &Send> {
        self.sends
            .iter()
            .filter(|send| send.turn().is_none() && Some(&send.attempt_id) == self.task_attempt_id.as_ref())
    }

    /// Whether `attempt` is or was an attempt of this task, as far back as the row remembers.
    pub fn had_attempt(&self, attempt: &AttemptId) -> bool {
        self.task_attempt_id.as_ref() == Some(attempt) || self.past_attempts.contains(attempt)
    }

    /// Whether anything is in flight: the veto over every claim (rule 69).
    pub fn is_live(&self) -> bool {
        self.turns().next().is_some() || self.waiting_sends().next().is_some()
    }

    /// Whether the gate may admit at all: launched, or reactivated.
    pub fn is_launched(&self) -> bool {
        match self.task_status {
            TaskStatus::Starting | TaskStatus::Running => true,
            TaskStatus::Reported => self.attempt.origin == Origin::Reactivate,
            TaskStatus::Queued | TaskStatus::Interrupted => false,
        }
    }

    /// Whether the current attempt is closed by a Stop: that shuts its descendants too.
    pub fn is_stopped(&self) -> bool {
        self.settlement.as_ref().is_some_and(|settlement| settlement.closure.closed_by == ClosedBy::Stop)
    }

    /// The row's state in one word, for the history.
    pub fn state_word(&self) -> String {
        let retired = if self.task_attempt_retired_by.is_some() { "/retired" } else { "" };
        format!("{}/{}{retired}", self.task_status.as_str(), self.phase().as_str())
    }

    /// What is still owed, by whom and since when: the turns of every attempt, and the cleanups. Only the
    /// current attempt's own turns and cleanups hold its settlement open ([`Row::n_owed`]).
    pub fn owed(&self) -> Vec<Value> {
        let cleanups =
            self.settlement.iter().flat_map(|settlement| &settlement.closure.cleanups).map(|cleanup| {
                json!({ "kind": "cleanup", "cleanupId": cleanup.cleanup_id, "name": cleanup.name,
                        "ownerPid": cleanup.process.as_ref().map(|process| process.pid), "since": cleanup.since })
            });
        self.turns().map(|send| self.owed_turn(send)).chain(cleanups).collect()
    }

    /// A turn that is owed, and the name of who owns its attempt.
    fn owed_turn(&self, send: &Send) -> Value {
        let earlier = self.superseded.iter().find(|earlier| earlier.attempt_id == send.attempt_id);
        let owner = if self.task_attempt_id.as_ref() == Some(&send.attempt_id) {
            self.attempt.owner.name.as_ref()
        } else {
            earlier.and_then(|earlier| earlier.owner.name.as_ref())
        };
        let mut fact = turn_fact(send);
        if let (Some(owner), Some(object)) = (owner, fact.as_object_mut()) {
            object.insert("owner".to_owned(), json!(owner));
        }
        fact
    }

    /// What is still owed after the attempt `stopped` was stopped: everything, or its own turns only if another
    /// attempt is current by now.
    pub fn owed_after(&self, stopped: Option<&str>) -> Vec<Value> {
        if self.task_attempt_id.as_ref().map(AttemptId::as_str) == stopped {
            return self.owed();
        }
        self.turns().filter(|send| Some(send.attempt_id.as_str()) == stopped).map(turn_fact).collect()
    }

    /// How many things the current attempt still owes.
    pub fn n_owed(&self) -> usize {
        let cleanups = self.settlement.as_ref().map_or(0, |settlement| settlement.closure.cleanups.len());
        self.own_turns().count() + cleanups
    }

    /// Writes one event into the history.
    pub fn record(
        &mut self,
        call: &Call,
        before: Option<String>,
        what: Code,
        subject: Option<&str>,
        note: Option<&str>,
    ) {
        self.updated_at = call.now.clone();
        let to = self.state_word();
        self.history.push(Event {
            n: 0,
            at: call.now.clone(),
            command: call.command.to_owned(),
            request_id: call.request_id.clone(),
            what: what.as_str().to_owned(),
            from: before,
            to,
            subject: subject.map(str::to_owned),
            note: note.map(str::to_owned),
            extra: Extra::new(),
        });
    }

    /// Refuses when the attempt was retired (rule 73). The sentence is stable.
    pub fn refuse_retired(&self) -> Result<(), Box<Refusal>> {
        let Some(claim) = &self.task_attempt_retired_by else { return Ok(()) };
        let message = format!(
            "This sub-agent's attempt was retired by workflow run {} (step {}); start a new task instead.",
            claim.run_id, claim.step_id
        );
        let mut refusal = Refusal::new(Code::Retired, message)
            .fact("runId", claim.run_id.as_str())
            .fact("stepId", claim.step_id.as_str());
        if let Some(replacement) = self.retirement.as_ref().and_then(|r| r.replacement_task_id.as_ref()) {
            refusal = refusal.fact("replacementTaskId", replacement.as_str());
        }
        Err(Box::new(refusal))
    }

    /// Refuses when `attempt` is not the current one (rule 27).
    pub fn refuse_stale(&self, attempt: &AttemptId) -> Result<(), Box<Refusal>> {
        if self.task_attempt_id.as_ref() == Some(attempt) {
            return Ok(());
        }
        let current = self.task_attempt_id.as_ref().map_or("none", AttemptId::as_str);
        let refusal = Refusal::new(
            Code::StaleAttempt,
            format!("task `{}` has attempt {current} now, not {attempt}", self.task_id),
        )
        .hint("what was started under the earlier attempt may only be settled");
        Err(Box::new(refusal.fact("currentAttemptId", current)))
    }

    /// Refuses when admission is shut (rules 34 to 36).
    pub fn refuse_closed(&self) -> Result<(), Box<Refusal>> {
        match self.phase() {
            Phase::Open => Ok(()),
            Phase::Closing => Err(Box::new(
                Refusal::new(
                    Code::AttemptClosing,
                    format!(
                        "admission of task `{}` is shut and {} still owed",
                        self.task_id,
                        owed_words(self)
                    ),
                )
                .hint("what runs may finish and be settled; go on with `rotate --as reawaken` after that")
                .fact("owed", self.owed()),
            )),
            Phase::Settled => Err(Box::new(
                Refusal::new(
                    Code::AttemptSettled,
                    format!("the attempt of task `{}` is settled", self.task_id),
                )
                .hint(self.continue_hint()),
            )),
        }
    }

    fn continue_hint(&self) -> String {
        let how = if self.task_status == TaskStatus::Reported { "reactivate" } else { "reawaken" };
        let command = command_line("rotate", &self.task_id, &format!("--as {how}"));
        format!("to go on on purpose, publish a fresh attempt: {command}")
    }

    /// Refuses a caller without one of the roles `enough` for the owned attempt `attempt`.
    pub fn refuse_stranger(
        &self,
        credentials: &dyn Credentials,
        attempt: &AttemptId,
        enough: &[Role],
    ) -> Result<(), Box<Refusal>> {
        let role = credentials.role(attempt);
        if enough.contains(&role) {
            return Ok(());
        }
        let why = match role {
            Role::Absent => "no token was given",
            Role::Worker => "a worker's token may report and admit, not settle",
            Role::Owner | Role::Wrong => "the token given is not its token",
        };
        let owner = self.attempt.owner.name.as_deref().map_or(String::new(), |name| format!(" of `{name}`"));
        let refusal = Refusal::new(
            Code::NotOwner,
            format!("attempt {attempt} of task `{}` needs the token{owner}, and {why}", self.task_id),
        )
        .hint("pass --token, --token-file or --token-fd, or set LYCHGATE_TOKEN; anyone may `stop`");
        Err(Box::new(refusal))
    }

    /// Discharges every send that was not admitted: it can never start a turn any more. Returns how many.
    pub fn discharge_waiting(&mut self) -> usize {
        let before = self.sends.len();
        self.sends.retain(|send| matches!(send.state, SendState::Admitted { .. }));
        before - self.sends.len()
    }
}

/// The fact that a turn is in flight.
pub fn turn_fact(send: &Send) -> Value {
    let since: &Timestamp = match &send.state {
        SendState::Admitted { admitted_at, .. } => admitted_at,
        SendState::Pending | SendState::Enqueued => &send.since,
    };
    let mut fact = json!({ "kind": "turn", "turnId": send.turn(), "sendId": send.send_id,
                           "attemptId": send.attempt_id, "since": since });
    if let (Some(label), Some(object)) = (&send.label, fact.as_object_mut()) {
        object.insert("label".to_owned(), json!(label));
    }
    fact
}

/// What is owed, in words.
pub fn owed_words(row: &Row) -> String {
    let turns = row.turns().count();
    let cleanups = row.settlement.as_ref().map_or(0, |settlement| settlement.closure.cleanups.len());
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    match (turns, cleanups) {
        (0, 0) => "nothing is".to_owned(),
        (t, 0) => format!("{} {}", count(t, "turn"), if t == 1 { "is" } else { "are" }),
        (0, c) => format!("{} {}", count(c, "cleanup"), if c == 1 { "is" } else { "are" }),
        (t, c) => format!("{} and {} are", count(t, "turn"), count(c, "cleanup")),
    }
}

/// A word as a shell reads it, for the commands that answers suggest.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// An option and its value as a shell reads them. A value that looks like an option is tied to its own.
pub fn shell_option(name: &str, value: &str) -> String {
    let tie = if value.starts_with('-') { '=' } else { ' ' };
    format!("{name}{tie}{}", shell_word(value))
}

/// A whole command about a task as a shell reads it. A name that looks like an option goes behind `--`.
pub fn command_line(verb: &str, task: &Name, options: &str) -> String {
    let gap = if options.is_empty() { "" } else { " " };
    let word = shell_word(task.as_str());
    if word.trim_start_matches('\'').starts_with('-') {
        format!("lychgate {verb}{gap}{options} -- {word}")
    } else {
        format!("lychgate {verb} {word}{gap}{options}")
    }
}
