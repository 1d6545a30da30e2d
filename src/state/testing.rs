//! Rows for the unit tests.

use crate::protocol::row::Row;

pub(super) fn row(task: &str, parent: &str) -> Row {
    serde_json::from_value(serde_json::json!({
        "taskId": task,
        "parentWorkspaceId": parent,
        "taskStatus": "queued",
        "taskAttemptId": "att_0123456789abcdef",
        "attempt": {
            "origin": "reserve", "owned": true, "receiptEligible": true, "reason": "fresh",
            "since": "2026-01-01T00:00:00Z"
        },
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z"
    }))
    .unwrap()
}
