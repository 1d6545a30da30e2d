//! Steps: what a task and its attempts are, and how they follow one another.

use super::Step;
use crate::protocol::ids::{AttemptId, SendId};
use crate::protocol::invariants::unless;
use crate::protocol::requests::REQUESTS_KEPT;
use crate::protocol::row::{Origin, Row, Send, TaskStatus};
use crate::protocol::state::Phase;

pub(super) fn new_row_is_proven(step: &Step<'_>) -> Option<String> {
    let row = step.after;
    let fits = row.task_status == TaskStatus::Queued
        && row.task_attempt_id.is_some()
        && (row.attempt.receipt_eligible && row.attempt.owned && !row.task_attempt_unproven)
        && (row.settlement.is_none() && row.task_attempt_retired_by.is_none() && row.retirement.is_none())
        && (row.sends.is_empty() && row.superseded.is_empty() && row.reports.is_empty())
        && (row.stop_epoch, row.sends_minted, row.turns_minted, row.late_reports) == (0, 0, 0, 0);
    unless(step.before.is_some() || row.attempt.origin == Origin::Import || fits, || row.state_word())
}

pub(super) fn task_is_fixed(step: &Step<'_>) -> Option<String> {
    let (before, after) = (step.before?, step.after);
    let fits = before.task_id == after.task_id
        && before.parent_workspace_id == after.parent_workspace_id
        && before.ancestors == after.ancestors
        && before.workflow_task == after.workflow_task
        && before.replaces == after.replaces
        && before.created_at == after.created_at
        && before.extra == after.extra;
    unless(fits, || format!("`{}` became another task", before.task_id))
}

pub(super) fn marker_stays(step: &Step<'_>) -> Option<String> {
    let was = step.before?.task_attempt_unproven;
    unless(!was || step.after.task_attempt_unproven, || "the marker is gone".to_owned())
}

pub(super) fn claim_stays(step: &Step<'_>) -> Option<String> {
    let claim = step.before?.task_attempt_retired_by.as_ref()?;
    let now = step.after.task_attempt_retired_by.as_ref();
    unless(now == Some(claim), || format!("{claim:?} became {now:?}"))
}

pub(super) fn nonce_by_grant(step: &Step<'_>) -> Option<String> {
    let was = step.before?.retirement.as_ref()?;
    let Some(now) = &step.after.retirement else { return Some("the nonce is gone".to_owned()) };
    let granted = was.replacement_task_id.is_none() && now.replacement_task_id.is_none();
    unless(was.nonce == now.nonce || granted, || "the nonce changed with, or after, its spending".to_owned())
}

pub(super) fn replaced_once(step: &Step<'_>) -> Option<String> {
    let was = step.before?.retirement.as_ref()?.replacement_task_id.as_ref()?;
    let now = step.after.retirement.as_ref().and_then(|now| now.replacement_task_id.as_ref());
    unless(now == Some(was), || format!("replaced by `{was}`, then by {now:?}"))
}

pub(super) fn id_is_fresh(step: &Step<'_>) -> Option<String> {
    let before = step.before?;
    if step.same_attempt() {
        return None;
    }
    let Some(fresh) = &step.after.task_attempt_id else { return Some("the attempt id is gone".to_owned()) };
    let mut known = (before.superseded.iter().map(|earlier| &earlier.attempt_id))
        .chain(before.sends.iter().map(|send| &send.attempt_id))
        .chain(before.reports.iter().filter_map(|report| report.attempt_id.as_ref()))
        .chain(&before.past_attempts);
    unless(!known.any(|known| known == fresh), || format!("{fresh} was there before"))
}

pub(super) fn past_is_remembered(step: &Step<'_>) -> Option<String> {
    let left = step.before?.task_attempt_id.as_ref()?;
    unless(step.after.had_attempt(left), || format!("{left} is forgotten"))
}

pub(super) fn retired_keeps_id(step: &Step<'_>) -> Option<String> {
    let retired = step.before?.task_attempt_retired_by.is_some();
    unless(!retired || step.same_attempt(), || format!("{:?} after the claim", step.after.task_attempt_id))
}

pub(super) fn fresh_is_open(step: &Step<'_>) -> Option<String> {
    let after = step.after;
    let own = |send: &Send| Some(&send.attempt_id) == after.task_attempt_id.as_ref();
    let open = after.phase() == Phase::Open
        && !after.attempt.ever_admitted
        && !after.attempt.unowned_send_used
        && !after.sends.iter().any(own);
    unless(step.before.is_none() || step.same_attempt() || open, || after.state_word())
}

pub(super) fn attempt_is_fixed(step: &Step<'_>) -> Option<String> {
    let before = step.before.filter(|_| step.same_attempt())?;
    let (was, is) = (&before.attempt, &step.after.attempt);
    let launch = before.task_status == TaskStatus::Queued && step.after.task_status == TaskStatus::Starting;
    let fits = was.origin == is.origin
        && was.owned == is.owned
        && was.receipt_eligible == is.receipt_eligible
        && was.since == is.since
        && was.unproven_override == is.unproven_override
        && was.extra == is.extra
        && (was.owner == is.owner || launch)
        && was.ever_admitted <= is.ever_admitted
        && was.unowned_send_used <= is.unowned_send_used;
    unless(fits, || format!("{was:?} became {is:?}"))
}

pub(super) fn proven_by_induction(step: &Step<'_>) -> Option<String> {
    let before = step.before.filter(|_| !step.same_attempt())?;
    let settled = before.phase() == Phase::Settled && before.attempt.owned && before.attempt.receipt_eligible;
    let reserved = before.task_status == TaskStatus::Queued && before.task_attempt_id.is_some();
    let proven = !before.task_attempt_unproven && before.turns().next().is_none() && (settled || reserved);
    unless(!step.after.attempt.receipt_eligible || proven, || {
        format!("eligible after {}, marked {}", before.state_word(), before.task_attempt_unproven)
    })
}

pub(super) fn superseded_stays(step: &Step<'_>) -> Option<String> {
    let before = step.before?;
    let after = &step.after.superseded;
    let prefix = after.get(..before.superseded.len()) == Some(before.superseded.as_slice());
    let left = before.task_attempt_id.as_ref().filter(|_| !step.same_attempt());
    let listed = |id: &AttemptId| after.iter().any(|earlier| earlier.attempt_id == *id);
    // A queued attempt was never launched, so its successor's launch leaves nothing behind.
    let owed = before.phase() != Phase::Settled && before.task_status != TaskStatus::Queued;
    unless(prefix && left.is_none_or(|id| !owed || listed(id)), || {
        format!("{} were listed, {} are; {left:?} was left", before.superseded.len(), after.len())
    })
}

pub(super) fn status_moves(step: &Step<'_>) -> Option<String> {
    use TaskStatus::{Interrupted, Queued, Reported, Running, Starting};
    let (before, after) = (step.before?, step.after);
    let fresh = !step.same_attempt();
    let fits = match (before.task_status, after.task_status) {
        (Queued, Starting) | (Starting, Running) => true,
        // Only an attempt under its own id is handed back, closed or reported.
        (Queued | Starting | Running, Interrupted)
        | (Starting, Queued)
        | (Running | Interrupted, Reported) => !fresh,
        (Interrupted, Running) => fresh,
        (was, is) => was == is && (!fresh || matches!(is, Running | Reported)),
    };
    unless(fits, || format!("{} -> {}, fresh {fresh}", before.state_word(), after.state_word()))
}

pub(super) fn nothing_under_a_stop(step: &Step<'_>) -> Option<String> {
    let ancestor = step.stopped_ancestor?;
    let launched = |before: &Row| {
        before.task_status == TaskStatus::Queued && step.after.task_status == TaskStatus::Starting
    };
    let published = !step.same_attempt() && step.after.attempt.origin != Origin::Startup;
    let begins = published || step.before.is_some_and(launched) || step.new_turns().next().is_some();
    unless(!begins, || format!("`{ancestor}` is stopped, and {} began", step.after.state_word()))
}

pub(super) fn history_grows(step: &Step<'_>) -> Option<String> {
    let was = step.before.map_or(0, |before| before.history.total);
    unless(step.after.history.total > was, || format!("{was} -> {}", step.after.history.total))
}

pub(super) fn requests_are_bounded(step: &Step<'_>) -> Option<String> {
    let n = |row: &Row| row.requests.iter().count();
    let grew = n(step.after) > step.before.map_or(0, n);
    let open = |id: &SendId| step.after.sends.iter().any(|send| send.send_id == *id);
    let older = step.after.requests.iter().take(n(step.after).saturating_sub(REQUESTS_KEPT));
    let idle = older.filter(|record| !record.send_id.as_ref().is_some_and(open)).count();
    unless(!grew || idle == 0, || format!("{idle} of {} records are of nothing open", n(step.after)))
}
