//! A root in memory: rows as they would lie on disk, the evidence beside them, and what each actor remembers.

use std::collections::{BTreeMap, BTreeSet};

use lychgate::protocol::classify::{self, Evidence, ReportEvidence};
use lychgate::protocol::codes::Code;
use lychgate::protocol::ids::{AttemptId, CleanupId, Name, Nonce, RequestId, SendId, Timestamp, TurnId};
use lychgate::protocol::invariants::{
    Deed, OutcomeRule, RowRule, Seen as Classification, Step, StepRule, Violation, World as Everything,
    WorldRule,
};
use lychgate::protocol::lineage::ReceiptEvidence;
use lychgate::protocol::receipt::Receipt;
use lychgate::protocol::requests::{RequestRecord, Seen};
use lychgate::protocol::row::{Extra, Row};
use lychgate::protocol::verdict::{Call, Credentials, OwnerLife, ReceiptDue, Refusal, Role, Said};

/// What went wrong: a broken invariant, in words.
pub type Checked = Result<(), String>;

/// The owner, another owner, a worker, and a stranger who never holds a token.
pub const N_ACTORS: usize = 4;
pub const WORKER: usize = 2;
pub const STRANGER: usize = 3;

/// A token as its holder remembers it.
pub type Key = (AttemptId, Role);

/// The token a call shows.
pub struct Shown(pub Option<Key>);

impl Credentials for Shown {
    fn role(&self, attempt: &AttemptId) -> Role {
        match &self.0 {
            None => Role::Absent,
            Some((of, role)) if of == attempt => *role,
            Some(_) => Role::Wrong,
        }
    }
}

/// A call whose answer somebody may ask for again.
#[derive(Clone)]
pub struct Asked {
    pub task: Name,
    pub record: RequestRecord,
    pub tokens_of: Option<AttemptId>,
}

/// How often something was seen, over all stories.
#[derive(Default)]
pub struct Tally(pub BTreeMap<String, u64>);

impl Tally {
    pub fn saw(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }
}

#[derive(Default)]
pub struct World {
    pub rows: BTreeMap<Name, Row>,
    pub receipts: Vec<Receipt>,
    pub published: Vec<(Name, AttemptId)>,
    pub admitted: Vec<(Name, TurnId)>,
    pub sends: Vec<(Name, SendId)>,
    pub cleanups: Vec<(Name, CleanupId)>,
    pub dead_debts: BTreeSet<CleanupId>,
    pub nonces: Vec<(Name, Nonce)>,
    pub reports: BTreeSet<(Name, AttemptId)>,
    pub late: BTreeSet<(Name, AttemptId, String)>,
    pub lives: BTreeMap<AttemptId, OwnerLife>,
    pub memory: [BTreeSet<(String, AttemptId)>; N_ACTORS],
    pub asked: Vec<Asked>,
    pub tally: Tally,
    drawn: u64,
}

fn words(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn holds(violations: &[Violation]) -> Checked {
    if violations.is_empty() { Ok(()) } else { Err(words(violations)) }
}

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

impl World {
    /// A number that was not drawn before, in no order (rule 28).
    pub fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    pub fn fresh_attempt(&mut self) -> AttemptId {
        AttemptId::parse(&format!("att_{:016x}", self.draw())).unwrap()
    }

    pub fn fresh_nonce(&mut self) -> Nonce {
        Nonce::parse(&format!("non_{:032x}", self.draw())).unwrap()
    }

    pub fn fresh_cleanup(&mut self) -> CleanupId {
        CleanupId::parse(&format!("cln_{:032x}", self.draw())).unwrap()
    }

    pub fn call(&mut self, command: &'static str) -> Call {
        let n = self.draw();
        Call {
            command,
            request_id: RequestId::parse(&format!("req_{n:016x}")).unwrap(),
            now: Timestamp::parse(&format!("2026-01-01T00:00:{:02}.000Z", self.drawn % 60)).unwrap(),
        }
    }

    /// Hands the tokens of an attempt to whoever asked, and the worker's to the worker.
    pub fn hand_out(&mut self, actor: usize, attempt: &AttemptId) {
        if actor != STRANGER {
            self.memory[actor].insert(("owner".to_owned(), attempt.clone()));
        }
        self.memory[WORKER].insert(("worker".to_owned(), attempt.clone()));
    }

    pub fn owner_life(&self, row: &Row) -> OwnerLife {
        match &row.task_attempt_id {
            Some(attempt) if row.attempt.owned => {
                self.lives.get(attempt).copied().unwrap_or(OwnerLife::Unknown)
            }
            _ => OwnerLife::None,
        }
    }

    pub fn receipt(&self, row: &Row) -> ReceiptEvidence {
        let found = self.receipts.iter().any(|receipt| {
            receipt.task_id == row.task_id && Some(&receipt.attempt_id) == row.task_attempt_id.as_ref()
        });
        if found { ReceiptEvidence::Found } else { ReceiptEvidence::NotFound }
    }

    /// The first ancestor that is closed by a Stop, from the root on.
    pub fn stopped_above(&self, parent: &Name, ancestors: &[Name]) -> Option<Name> {
        let mut line = ancestors.iter().rev().chain(std::iter::once(parent));
        line.find(|name| self.rows.get(*name).is_some_and(Row::is_stopped)).cloned()
    }

    pub fn refused(&mut self, refusal: &Refusal) {
        self.tally.saw(refusal.code.as_str());
    }

    /// Commits one row: the step is judged, the row goes to disk and comes back, and the world is judged.
    pub fn commit(&mut self, mut after: Row, receipt: Option<&ReceiptDue>, deed: Deed<'_>) -> Checked {
        let before = self.rows.get(&after.task_id).cloned();
        let stopped = self.stopped_above(&after.parent_workspace_id, &after.ancestors);
        let step = Step {
            before: before.as_ref(),
            after: &after,
            receipt,
            deed,
            stopped_ancestor: stopped.as_ref(),
        };
        holds(&StepRule::check(&step))?;
        after.history.cut();
        let text = serde_json::to_string(&after).map_err(|error| error.to_string())?;
        let read: Row = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        if read != after {
            return Err(format!("a row comes back from disk as another one: {text}"));
        }
        self.note(before.as_ref(), &read);
        if let Some(due) = receipt {
            self.tally.saw("receipt");
            self.receipts.push(due.receipt.clone());
        }
        self.rows.insert(read.task_id.clone(), read);
        Ok(())
    }

    /// Writes down what the step published, registered and admitted.
    fn note(&mut self, before: Option<&Row>, after: &Row) {
        let task = &after.task_id;
        if let Some(attempt) = &after.task_attempt_id
            && before.is_none_or(|before| before.task_attempt_id.as_ref() != Some(attempt))
        {
            self.published.push((task.clone(), attempt.clone()));
        }
        let had = |turn: &TurnId| before.is_some_and(|row| row.turns().any(|send| send.turn() == Some(turn)));
        let knew = |id: &SendId| before.is_some_and(|row| row.sends.iter().any(|send| send.send_id == *id));
        for send in &after.sends {
            if !knew(&send.send_id) {
                self.sends.push((task.clone(), send.send_id.clone()));
            }
            if let Some(turn) = send.turn().filter(|turn| !had(turn)) {
                self.admitted.push((task.clone(), turn.clone()));
            }
        }
    }

    /// Everything that must be true between two calls.
    pub fn check(&mut self) -> Checked {
        let mut reasons = BTreeSet::new();
        for row in self.rows.values() {
            holds(&RowRule::check(row))?;
            self.check_outcome(row, &mut reasons)?;
        }
        for reason in reasons {
            self.tally.saw(reason);
        }
        holds(&WorldRule::check(&Everything {
            rows: &self.rows,
            receipts: &self.receipts,
            published: &self.published,
            admitted: &self.admitted,
        }))
    }

    fn check_outcome(&self, row: &Row, reasons: &mut BTreeSet<&'static str>) -> Checked {
        for role in [Role::Owner, Role::Absent] {
            let said = classify::classify(row, &self.evidence(row, role));
            reasons.extend(said.reason.map(Code::as_str));
            holds(&OutcomeRule::check(&Classification { row, said: &said }))?;
        }
        Ok(())
    }

    fn evidence(&self, row: &Row, role: Role) -> Evidence {
        Evidence {
            receipt: self.receipt(row),
            reports: ReportEvidence::AsTheRowSays,
            owner_life: self.owner_life(row),
            role,
        }
    }

    /// What a row remembers of a granted call.
    pub fn record(call: &Call, digest: &str, said: &Said, send: Option<SendId>) -> RequestRecord {
        let mut answer = Extra::new();
        answer.insert("code".to_owned(), said.code.as_str().into());
        answer.insert("facts".to_owned(), said.facts.clone().into());
        RequestRecord {
            request_id: call.request_id.clone(),
            command: call.command.to_owned(),
            digest: digest.to_owned(),
            answer,
            send_id: send,
            authorised: said.code == Code::Admitted,
            extra: Extra::new(),
        }
    }

    /// Asks an earlier question again: the row still knows the answer, and gives it again unless it authorised
    /// an act.
    pub fn repeat(&mut self, actor: usize, index: usize) -> Checked {
        let Some(asked) = self.asked.get(index % self.asked.len().max(1)).cloned() else { return Ok(()) };
        let newer = self.asked.iter().skip(index % self.asked.len() + 1);
        let newer = newer.filter(|later| later.task == asked.task).count();
        let row = &self.rows[&asked.task];
        match row.requests.seen(&asked.record.request_id, &asked.record.digest) {
            Seen::Before(record) if *record == asked.record => {}
            Seen::Before(record) => return Err(format!("{record:?} was {:?}", asked.record)),
            Seen::Never if newer >= lychgate::protocol::requests::REQUESTS_KEPT => return Ok(()),
            other => return Err(format!("{:?} is {other:?} after {newer} newer calls", asked.record)),
        }
        match row.requests.seen(&asked.record.request_id, "another wish") {
            Seen::ForAnother(_) => {}
            other => return Err(format!("another wish under the same id is {other:?}")),
        }
        self.tally.saw("repeated");
        if let Some(attempt) = asked.tokens_of.filter(|_| !asked.record.authorised) {
            self.hand_out(actor, &attempt);
        }
        Ok(())
    }
}
