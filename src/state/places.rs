//! Where things lie, for people. Nothing is opened by these paths.

use std::path::{Path, PathBuf};

use super::names::{ROW, TASKS, encode, evidence_file, receipts_folder, reports_folder};
use super::{Store, disk};
use crate::protocol::ids::{AttemptId, Name};

impl Store {
    /// The file of a task's row.
    pub fn row_path(&self, task: &Name) -> PathBuf {
        self.root.join(TASKS).join(encode(task)).join(ROW)
    }

    /// The receipt of an attempt that counts: the one in its parent's folder.
    pub fn receipt_path(&self, workspace: &Name, task: &Name, attempt: &AttemptId) -> PathBuf {
        self.below(&receipts_folder(workspace, task)).join(evidence_file(Some(attempt)))
    }

    /// The folder of a task's reports.
    pub fn reports_path(&self, workspace: &Name, task: &Name) -> PathBuf {
        self.below(&reports_folder(workspace, task))
    }

    fn below(&self, folders: &[String]) -> PathBuf {
        folders.iter().fold(self.root.clone(), |path, folder| path.join(folder))
    }
}

/// The root as it really is, where it exists; else as it was named.
pub fn canonical(root: &Path) -> PathBuf {
    disk::canonical(root).ok().flatten().unwrap_or_else(|| root.to_owned())
}

/// The user this process acts as, for people.
pub fn user() -> String {
    format!("uid {}", disk::effective_user())
}
