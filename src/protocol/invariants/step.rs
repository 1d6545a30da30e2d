//! What must be true of one change of one row.

use std::collections::BTreeSet;

use crate::protocol::ids::{AttemptId, Name, SendId, TurnId};
use crate::protocol::row::{Row, Send};
use crate::protocol::state::Phase;
use crate::protocol::verdict::{ReceiptDue, Role};

mod flow;
mod identity;

/// What the call said that made the change, as far as an invariant asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed<'a> {
    /// It was a Stop.
    Stop,
    /// It said that a turn has ended.
    EndOfTurn {
        /// The turn it named.
        turn: &'a TurnId,
        /// What the token it showed gives for that turn's own attempt.
        role: Role,
    },
    /// Anything else.
    Other,
}

/// One committed change of one row.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The row as it was. `None`: there was none.
    pub before: Option<&'a Row>,
    /// The row as it is.
    pub after: &'a Row,
    /// The receipt that went into the same commit.
    pub receipt: Option<&'a ReceiptDue>,
    /// What the call said.
    pub deed: Deed<'a>,
    /// An ancestor whose current attempt was closed by a Stop then.
    pub stopped_ancestor: Option<&'a Name>,
}

invariants! {
    /// The invariants over a step.
    StepRule over Step<'_> {
        NewRowIsProven ["rule 19"]
            "a reserved task is queued, proven, owned, open, and has no past" => identity::new_row_is_proven;
        TaskIsFixed ["rules 29, 65, 80"]
            "a task keeps its name, its parent, its ancestors, its step, what it replaces, and what we do not know"
            => identity::task_is_fixed;
        MarkerStays ["rules 11, 16"]
            "the marker is only ever added" => identity::marker_stays;
        ClaimStays ["rules 66, 95"]
            "a claim never changes or disappears" => identity::claim_stays;
        NonceByGrant ["hazard H1"]
            "the nonce changes only by a grant of an unspent claim" => identity::nonce_by_grant;
        ReplacedOnce ["rule 10; hazard H1"]
            "the replacement of a retired attempt is set once, on the nonce that stood" => identity::replaced_once;
        IdIsFresh ["rules 3, 17, 18"]
            "an attempt id that is published was not known to the row before, and never goes away"
            => identity::id_is_fresh;
        PastIsRemembered ["rules 3, 39"]
            "the attempt that is left is remembered, so that its ids are told from strange ones"
            => identity::past_is_remembered;
        RetiredKeepsId ["rules 9, 21, 73"]
            "a retired attempt gets no successor" => identity::retired_keeps_id;
        FreshIsOpen ["rules 18, 41"]
            "a fresh attempt is open, and nothing was sent under it" => identity::fresh_is_open;
        AttemptIsFixed ["rules 14, 16, 37"]
            "what an attempt is was decided when its id was published; its owner changes only with its own launch"
            => identity::attempt_is_fixed;
        ProvenByInduction ["rules 11, 15"]
            "a proven successor follows a reservation or an eligible settled attempt, over no marker and no turn"
            => identity::proven_by_induction;
        SupersededStays ["decision 18"]
            "a superseded attempt that was not settled stays listed" => identity::superseded_stays;
        CountersGrow ["rules 37, 39"]
            "the counters of sends and turns only grow, by what was minted" => flow::counters_grow;
        SendIsAdmissible ["rules 26, 27, 40, 73"]
            "a send is registered only for the current, open attempt of a task that is not retired"
            => flow::send_is_admissible;
        TurnIsAdmissible ["rules 1, 26, 27, 40, 46, 73, 104"]
            "a turn is admitted only under the current, open, launched attempt of a task that is not retired, and beside a turn of an earlier one only on a person's word"
            => flow::turn_is_admissible;
        SendGoesForward ["rules 37, 38, 39"]
            "a send never changes its attempt, never goes back, and keeps its turn" => flow::send_goes_forward;
        EndedStaysEnded ["rule 39"]
            "an id of a send or turn that was ended never comes back" => flow::ended_stays_ended;
        TurnEndsByItsOwnWord ["hazard H3; decisions 17, 18"]
            "a turn leaves the row only when the owner of its own attempt says that it has ended"
            => flow::turn_ends_by_its_own_word;
        PhaseGoesForward ["rules 34, 35, 36"]
            "an attempt never opens again, and never becomes unsettled" => flow::phase_goes_forward;
        SettledStays ["rules 36, 56"]
            "what settled an attempt, and its receipt, never change" => flow::settled_stays;
        DebtsArePaid ["rule 7; decision 15"]
            "a cleanup leaves what is owed only by being paid, and is paid once" => flow::debts_are_paid;
        ReceiptIsRight ["rules 1, 2, 11, 29, 58"]
            "a receipt is written for the attempt that settles in this step: current, owned, eligible, unmarked, with nothing in flight, to its parent and ancestors"
            => flow::receipt_is_right;
        ReceiptComesWithSettlement ["rule 51; decision 3"]
            "a settlement that says it left a receipt comes with it in the same commit"
            => flow::receipt_comes_with_settlement;
        StopIsCounted ["hazard H15"]
            "each Stop raises the stop epoch by one, and nothing else moves it" => flow::stop_is_counted;
        ReportIsRight ["rules 67, 68; decision 7"]
            "a report counts only for the current, unsettled, unretired attempt with a turn in flight"
            => flow::report_is_right;
        ReportStays ["rules 4, 72, 92"]
            "a report that was accepted stays, late ones stay counted, and a reported task stays reported"
            => flow::report_stays;
        StatusMoves ["rules 20, 21, 22, 24, 25"]
            "the status moves only along the ways there are" => identity::status_moves;
        NothingUnderAStop ["decision 8"]
            "nothing is reserved, launched, reawakened, reactivated or admitted under a stopped ancestor"
            => identity::nothing_under_a_stop;
        HistoryGrows ["hazard H15"]
            "every change is written into the history, whose count never falls" => identity::history_grows;
        RequestsAreBounded ["hazard H4; decision 19"]
            "beyond the last calls only those of undischarged sends are remembered" => identity::requests_are_bounded;
    }
}

impl Step<'_> {
    /// Whether the step leaves the attempt the one it was.
    fn same_attempt(&self) -> bool {
        self.before.is_some_and(|before| before.task_attempt_id == self.after.task_attempt_id)
    }

    /// The sends that are in the row now and were not before.
    fn new_sends(&self) -> impl Iterator<Item = &Send> {
        let old: BTreeSet<&SendId> =
            self.before.iter().flat_map(|row| &row.sends).map(|send| &send.send_id).collect();
        self.after.sends.iter().filter(move |send| !old.contains(&send.send_id))
    }

    /// The turns that are in flight now and were not before.
    fn new_turns(&self) -> impl Iterator<Item = &TurnId> {
        let old: BTreeSet<&TurnId> =
            self.before.iter().flat_map(|row| row.turns()).filter_map(Send::turn).collect();
        self.after.turns().filter_map(Send::turn).filter(move |turn| !old.contains(turn))
    }

    /// Why nothing may be sent for `attempt` in the row as it was.
    fn inadmissible(&self, attempt: &AttemptId) -> Option<&'static str> {
        let Some(before) = self.before else { return Some("there was no row") };
        if before.task_attempt_retired_by.is_some() {
            Some("retired")
        } else if before.task_attempt_id.as_ref() != Some(attempt) || !self.same_attempt() {
            Some("not current")
        } else if before.phase() != Phase::Open || self.after.phase() != Phase::Open {
            Some("closed")
        } else {
            None
        }
    }
}
