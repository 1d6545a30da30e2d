//! Gathers the evidence the rules ask for: the owner's life, the receipt, the reports.

use crate::protocol::classify::{Evidence as Known, ReportEvidence};
use crate::protocol::lineage::ReceiptEvidence;
use crate::protocol::row::{ProcessRef, Row, TaskStatus};
use crate::protocol::verdict::{OwnerLife, Role};
use crate::state::process::{Life, observe};
use crate::state::{Document, Evidence, Locality, Store, evidence_file};

use super::context::Context;

/// Whether the current attempt's owner is alive, and why.
pub(crate) fn owner_life(context: &Context, store: &Store, row: &Row) -> (OwnerLife, String) {
    if !row.attempt.owned {
        return (OwnerLife::None, "nobody owns this attempt".to_owned());
    }
    match &row.attempt.owner.process {
        None => (OwnerLife::Unknown, "no --owner-pid was given, so nobody can tell".to_owned()),
        Some(process) => process_life(context, store, process),
    }
}

/// Whether a recorded process is alive, and why.
pub(crate) fn process_life(context: &Context, store: &Store, process: &ProcessRef) -> (OwnerLife, String) {
    match observe(process, &context.here, store.locality() == Locality::Local) {
        Life::Alive(why) => (OwnerLife::Alive, why),
        Life::Dead(why) => (OwnerLife::Dead, why),
        Life::Unknown(why) => (OwnerLife::Unknown, why),
    }
}

/// All the evidence about a task, for a caller whose token gives `role`.
pub(crate) fn of(context: &Context, store: &Store, document: &Document, role: Role) -> Known {
    Known {
        receipt: receipt(store, document),
        reports: reports(store, document),
        owner_life: owner_life(context, store, &document.row).0,
        role,
    }
}

/// The evidence about a task that has no row: there is none.
pub(crate) fn none() -> Known {
    Known {
        receipt: ReceiptEvidence::NotFound,
        reports: ReportEvidence::AsTheRowSays,
        owner_life: OwnerLife::None,
        role: Role::Absent,
    }
}

/// The receipt of the current attempt, in the parent's folder.
pub(crate) fn receipt(store: &Store, document: &Document) -> ReceiptEvidence {
    let Some(attempt) = &document.row.task_attempt_id else { return ReceiptEvidence::NotFound };
    match store.read_receipt(document, attempt) {
        Evidence::Found(_) => ReceiptEvidence::Found,
        Evidence::NotFound => ReceiptEvidence::NotFound,
        Evidence::Unreadable(why) => ReceiptEvidence::Unreadable(why),
    }
}

/// The reports: every one the row names must be there and whole, and there must be no other.
pub(crate) fn reports(store: &Store, document: &Document) -> ReportEvidence {
    let row = &document.row;
    if row.task_status == TaskStatus::Reported && row.reports.is_empty() {
        // Only a row that was taken over can say so.
        return ReportEvidence::Broken("it says that it has reported, and there is no report".to_owned());
    }
    for report in &row.reports {
        match store.read_report(document, report) {
            Evidence::Found(()) => {}
            Evidence::NotFound => {
                let attempt = report.attempt_id.as_ref().map_or("unbound", |id| id.as_str());
                return ReportEvidence::Broken(format!("the report of {attempt} is missing"));
            }
            Evidence::Unreadable(why) => return ReportEvidence::Broken(why),
        }
    }
    match store.report_files(&row.parent_workspace_id, &row.task_id) {
        Err(why) => ReportEvidence::Broken(why),
        Ok(files) => match files.iter().find(|file| !names(row, file)) {
            Some(stray) => ReportEvidence::Broken(format!(
                "`{stray}` lies among its reports, and the row does not know it"
            )),
            None => ReportEvidence::AsTheRowSays,
        },
    }
}

fn names(row: &Row, file: &str) -> bool {
    row.reports.iter().any(|report| evidence_file(report.attempt_id.as_ref()) == file)
}
