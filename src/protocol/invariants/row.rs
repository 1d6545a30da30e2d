//! What must be true of every row at rest, whatever led to it.

use std::collections::BTreeSet;

use super::unless;
use crate::protocol::history::EVENTS_MAX;
use crate::protocol::ids::AttemptId;
use crate::protocol::row::{ClaimMode, Origin, Row, TaskStatus};
use crate::protocol::settlement::true_sources;
use crate::protocol::state::Phase;

invariants! {
    /// The invariants over one row.
    RowRule over Row {
        EligibleIsProven ["rules 11, 14, 58"]
            "an eligible attempt has an id, a token, and no marker" => eligible_is_proven;
        ReceiptIsDue ["rules 1, 11, 58"]
            "only an owned, eligible, unmarked attempt settles with a receipt, beside no turn in flight"
            => receipt_is_due;
        EligibleLeavesReceipt ["rule 51; decision 17"]
            "an eligible attempt that settles leaves a receipt" => eligible_leaves_receipt;
        SourceIsTrue ["rules 30, 51, 52, 53, 54"]
            "a receipt names a source that is true for what the attempt was doing when it was closed"
            => source_is_true;
        SettledOwesNothing ["rules 35, 36, 42"]
            "a settled attempt owes no turn and no cleanup" => settled_owes_nothing;
        ClosingOwes ["rule 42; decisions 15, 17"]
            "a closing attempt still owes something; the call that paid the last of it settled it"
            => closing_owes;
        ClosedHasNoWaitingSend ["rules 34, 40, 45; decision 14"]
            "no send waits to be admitted under a closed attempt" => closed_has_no_waiting_send;
        ClosedIsInterrupted ["rules 34, 51"]
            "a closed attempt is interrupted or reported, and an interrupted one is closed"
            => closed_is_interrupted;
        WaitingIsCurrent ["rules 37, 40"]
            "a send that is not admitted belongs to the current attempt" => waiting_is_current;
        IdsAreMinted ["rules 37, 39"]
            "every send and turn has an id of its own, minted under its attempt within the counters"
            => ids_are_minted;
        UnlaunchedIsIdle ["rules 20, 24, 46"]
            "a queued or starting task has no turn, and none was ever admitted under its attempt"
            => unlaunched_is_idle;
        TurnsAreRemembered ["rules 46, 54"]
            "an attempt with a turn in flight was admitted once" => turns_are_remembered;
        EarlierTurnsAreUnproven ["rules 11, 15; decision 18"]
            "a turn of an earlier attempt leaves the marker, and that attempt is listed as superseded"
            => earlier_turns_are_unproven;
        BesideTurnsByWord ["rule 40; decisions 5, 18"]
            "a turn runs beside one of an earlier attempt only on a person's recorded word"
            => beside_turns_by_word;
        UnownedHasOneSend ["rules 49, 105"]
            "an attempt that nobody owns has one send at most, and it is counted" => unowned_has_one_send;
        SupersededIsMarked ["rules 11, 16; decision 18"]
            "a row with unsettled superseded attempts is marked, and lists none of them twice"
            => superseded_is_marked;
        ClaimIsCurrent ["rules 65, 66, 69, 73"]
            "a claim names this task and its current attempt, and nothing is in flight" => claim_is_current;
        ClaimHasNonce ["rule 65; hazard H1"]
            "a claim has a nonce beside it, and a nonce has a claim" => claim_has_nonce;
        ClaimIsOfItsStep ["rules 65, 80; hazard H9"]
            "a claim is for the checkpoint of the task's own step" => claim_is_of_its_step;
        ClaimRests ["rules 67, 70; decision 5"]
            "a claim rests on a settlement without a report, or on a report bound to its attempt; and without a token's word on a receipt over no marker"
            => claim_rests;
        ReportIsBound ["rules 67, 68; decision 7"]
            "a task is reported exactly if it has a report, the one that counts is among them, and no attempt has two"
            => report_is_bound;
        StopIsCounted ["hazard H15"]
            "a task closed by a Stop has a stop epoch" => stop_is_counted;
        HistoryIsCounted ["hazard H15"]
            "the events in the row are bounded and end with the last one counted" => history_is_counted;
    }
}

fn eligible_is_proven(row: &Row) -> Option<String> {
    let proven = row.attempt.owned && !row.task_attempt_unproven && row.task_attempt_id.is_some();
    unless(!row.attempt.receipt_eligible || proven, || {
        format!(
            "eligible; owned {}, marked {}, id {:?}",
            row.attempt.owned, row.task_attempt_unproven, row.task_attempt_id
        )
    })
}

fn receipt_of(row: &Row) -> Option<crate::protocol::codes::ReceiptSource> {
    row.settlement.as_ref()?.settled.as_ref()?.receipt
}

fn receipt_is_due(row: &Row) -> Option<String> {
    receipt_of(row)?;
    let n_turns = row.turns().count();
    let due = row.attempt.owned && row.attempt.receipt_eligible && !row.task_attempt_unproven && n_turns == 0;
    unless(due, || {
        format!(
            "a receipt; owned {}, eligible {}, marked {}, turns {n_turns}",
            row.attempt.owned, row.attempt.receipt_eligible, row.task_attempt_unproven
        )
    })
}

fn eligible_leaves_receipt(row: &Row) -> Option<String> {
    let settled = row.phase() == Phase::Settled && row.attempt.receipt_eligible;
    unless(!settled || receipt_of(row).is_some(), || "settled, eligible, and no receipt".to_owned())
}

fn source_is_true(row: &Row) -> Option<String> {
    let source = receipt_of(row)?;
    let from = row.settlement.as_ref()?.closure.closed_from;
    unless(true_sources(from).contains(&source), || format!("{} from {from:?}", source.as_str()))
}

fn settled_owes_nothing(row: &Row) -> Option<String> {
    unless(row.phase() != Phase::Settled || row.n_owed() == 0, || format!("owed: {:?}", row.owed()))
}

fn closing_owes(row: &Row) -> Option<String> {
    unless(row.phase() != Phase::Closing || row.n_owed() > 0, || "closing, and nothing is owed".to_owned())
}

fn closed_has_no_waiting_send(row: &Row) -> Option<String> {
    let waiting = row.waiting_sends().count();
    unless(row.phase() == Phase::Open || waiting == 0, || format!("{waiting} waiting send(s)"))
}

fn closed_is_interrupted(row: &Row) -> Option<String> {
    let status = row.task_status;
    let fits = match row.phase() {
        Phase::Open => status != TaskStatus::Interrupted || row.attempt.origin == Origin::Import,
        Phase::Closing | Phase::Settled => matches!(status, TaskStatus::Interrupted | TaskStatus::Reported),
    };
    unless(fits, || row.state_word())
}

fn waiting_is_current(row: &Row) -> Option<String> {
    let stale = row
        .sends
        .iter()
        .find(|send| send.turn().is_none() && Some(&send.attempt_id) != row.task_attempt_id.as_ref());
    stale.map(|send| format!("{} waits under {}", send.send_id, send.attempt_id))
}

fn ids_are_minted(row: &Row) -> Option<String> {
    let mut seen = BTreeSet::new();
    for send in &row.sends {
        let minted = send.send_id.minted();
        let ours = minted.is_some_and(|minted| {
            minted.attempt == send.attempt_id && (1..=row.sends_minted).contains(&minted.counter)
        });
        if !ours || !seen.insert(send.send_id.as_str()) {
            return Some(format!(
                "send {} of {} ({} minted)",
                send.send_id, send.attempt_id, row.sends_minted
            ));
        }
        let Some(turn) = send.turn() else { continue };
        let ours = turn.minted().is_some_and(|minted| {
            minted.attempt == send.attempt_id && (1..=row.turns_minted).contains(&minted.counter)
        });
        if !ours || !seen.insert(turn.as_str()) {
            return Some(format!("turn {turn} of {} ({} minted)", send.attempt_id, row.turns_minted));
        }
    }
    None
}

fn unlaunched_is_idle(row: &Row) -> Option<String> {
    let unlaunched = matches!(row.task_status, TaskStatus::Queued | TaskStatus::Starting);
    let idle = !row.attempt.ever_admitted && row.turns().next().is_none();
    unless(!unlaunched || idle, || format!("{} with {} turn(s)", row.state_word(), row.turns().count()))
}

fn turns_are_remembered(row: &Row) -> Option<String> {
    unless(row.attempt.ever_admitted || row.own_turns().next().is_none(), || {
        "a turn, never admitted".to_owned()
    })
}

fn earlier_turns_are_unproven(row: &Row) -> Option<String> {
    let listed = |attempt: &AttemptId| row.superseded.iter().any(|earlier| earlier.attempt_id == *attempt);
    let loose = row.earlier_turns().find(|send| !row.task_attempt_unproven || !listed(&send.attempt_id));
    loose.map(|send| format!("a turn of {}, marked {}", send.attempt_id, row.task_attempt_unproven))
}

fn beside_turns_by_word(row: &Row) -> Option<String> {
    let beside = row.own_turns().next().is_some() && row.earlier_turns().next().is_some();
    unless(!beside || row.attempt.unproven_override.is_some(), || "turns of two attempts".to_owned())
}

fn unowned_has_one_send(row: &Row) -> Option<String> {
    let own = row.sends.iter().filter(|send| Some(&send.attempt_id) == row.task_attempt_id.as_ref()).count();
    let fits = own <= 1 && (own == 0 || row.attempt.unowned_send_used);
    unless(row.attempt.owned || fits, || format!("{own} send(s), used {}", row.attempt.unowned_send_used))
}

fn superseded_is_marked(row: &Row) -> Option<String> {
    let ids: BTreeSet<_> = row.superseded.iter().map(|earlier| &earlier.attempt_id).collect();
    let current = row.task_attempt_id.as_ref().is_some_and(|current| ids.contains(current));
    let fits = row.superseded.is_empty()
        || (row.task_attempt_unproven && ids.len() == row.superseded.len() && !current);
    unless(fits, || format!("{} superseded, marked {}", row.superseded.len(), row.task_attempt_unproven))
}

fn claim_is_current(row: &Row) -> Option<String> {
    let claim = row.task_attempt_retired_by.as_ref()?;
    let fits = claim.child_task_id == row.task_id
        && Some(&claim.attempt_id) == row.task_attempt_id.as_ref()
        && row.sends.is_empty();
    unless(fits, || {
        format!(
            "a claim on {} of {}; current {:?}, {} send(s)",
            claim.attempt_id,
            claim.child_task_id,
            row.task_attempt_id,
            row.sends.len()
        )
    })
}

fn claim_has_nonce(row: &Row) -> Option<String> {
    let (claim, nonce) = (row.task_attempt_retired_by.is_some(), row.retirement.is_some());
    unless(claim == nonce, || format!("claim {claim}, nonce {nonce}"))
}

fn claim_is_of_its_step(row: &Row) -> Option<String> {
    let claim = row.task_attempt_retired_by.as_ref()?;
    let fits = row.workflow_task.as_ref().is_some_and(|step| {
        step.run_id == claim.run_id && step.step_id == claim.step_id && step.input_hash == claim.input_hash
    });
    unless(fits, || format!("a claim for {}/{}/{}", claim.run_id, claim.step_id, claim.input_hash))
}

fn claim_rests(row: &Row) -> Option<String> {
    let claim = row.task_attempt_retired_by.as_ref()?;
    let mode = match claim.mode {
        ClaimMode::NoReport => {
            row.task_status == TaskStatus::Interrupted
                && row.phase() == Phase::Settled
                && row.reports.is_empty()
        }
        ClaimMode::RetireReported => {
            row.task_status == TaskStatus::Reported && row.report_attempt_id == row.task_attempt_id
        }
    };
    let word = claim.authority.is_some() || (!row.task_attempt_unproven && receipt_of(row).is_some());
    unless(mode && word, || format!("{:?} by {:?} over {}", claim.mode, claim.authority, row.state_word()))
}

fn report_is_bound(row: &Row) -> Option<String> {
    let reported = row.task_status == TaskStatus::Reported;
    let ids: BTreeSet<_> = row.reports.iter().map(|report| &report.attempt_id).collect();
    let counts = row.report_attempt_id.is_none() || ids.contains(&row.report_attempt_id);
    let fits = reported != row.reports.is_empty() && counts && ids.len() == row.reports.len();
    unless(fits, || {
        format!("{}, {} report(s), {:?} counts", row.state_word(), row.reports.len(), row.report_attempt_id)
    })
}

fn stop_is_counted(row: &Row) -> Option<String> {
    unless(!row.is_stopped() || row.stop_epoch > 0, || "a Stop, and epoch 0".to_owned())
}

fn history_is_counted(row: &Row) -> Option<String> {
    let events = &row.history.events;
    let last = events.last().map_or(0, |event| event.n);
    let in_a_row = events.windows(2).all(|pair| matches!(pair, [a, b] if a.n + 1 == b.n));
    // The event that makes it too long is still in the row that a commit is asked to write.
    let fits = last == row.history.total && in_a_row && events.len() <= EVENTS_MAX + 1;
    unless(fits, || format!("{} event(s) up to {last}, {} counted", events.len(), row.history.total))
}
