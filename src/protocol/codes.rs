//! Every code an answer can carry, with its exit status and its meaning: one table.
//!
//! `docs/CODES.md` is generated from this table, and a test keeps the two equal.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The exit status of a call. 1 and 2 are never used: agents read 2 as "block", and 1 is any crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Done, or the question is answered.
    Done = 0,
    /// A rule says no.
    Refused = 10,
    /// Evidence is missing or contradictory.
    Unresolved = 11,
    /// Something is still owed; ask again.
    Pending = 12,
    /// The call itself is wrong.
    Usage = 64,
    /// Data is unreadable, damaged or of a newer format; nothing was written.
    Data = 65,
    /// A bug.
    Internal = 70,
    /// The change was made visible but could not be proven durable, or its answer could not be delivered.
    Uncertain = 71,
    /// An I/O error; the old state stands.
    Io = 74,
    /// A lock was not free in time; nothing was changed.
    Busy = 75,
}

impl Exit {
    /// The number.
    pub fn number(self) -> u8 {
        self as u8
    }
}

macro_rules! codes {
    ($($variant:ident = $text:literal, $exit:ident, $meaning:literal;)+) => {
        /// What an answer says, in one stable word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the table gives each code its meaning")]
        pub enum Code { $($variant,)+ }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The code with that word.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }

            /// The exit status an answer with this code has.
            pub fn exit(self) -> Exit {
                match self { $(Self::$variant => Exit::$exit,)+ }
            }

            /// What it means, for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

codes! {
    // Done.
    Ok = "ok", Done, "the question is answered";
    Reserved = "reserved", Done, "the task exists now, queued, with a fresh proven attempt";
    Launched = "launched", Done, "the queued task is starting, and the caller is its only launcher";
    Rotated = "rotated", Done, "the task has a fresh attempt";
    Registered = "registered", Done, "the send is registered as pending; it may not start a turn yet";
    Enqueued = "enqueued", Done, "the send lies in the agent's queue; it asks the gate again before it starts";
    AlreadyEnqueued = "already-enqueued", Done, "the send was enqueued before; nothing changed";
    Admitted = "admitted", Done, "the turn may start, once";
    Stopped = "stopped", Done, "admission is shut and nothing is in flight";
    Stopping = "stopping", Done, "admission is shut; what is owed is still running (12 when `--wait` ran out)";
    AlreadyStopped = "already-stopped", Done, "an earlier Stop or settlement stands; only the stop epoch was raised";
    AlreadyStopping = "already-stopping", Done, "joined a Stop that still waits for what is owed";
    Settled = "settled", Done, "the attempt is settled: nothing can publish for it any more";
    TurnSettled = "turn-settled", Done, "the turn is discharged";
    SendSettled = "send-settled", Done, "the send is discharged without a turn";
    CleanupPaid = "cleanup-paid", Done, "the cleanup is paid";
    AlreadySettled = "already-settled", Done, "it was settled before; nothing changed";
    ReportAccepted = "report-accepted", Done, "the report is kept and the task is reported";
    AlreadyReported = "already-reported", Done, "the attempt published this very report before; nothing changed";
    Claimed = "claimed", Done, "the attempt is retired for this checkpoint; the nonce can be spent once";
    StepCompleted = "step-completed", Done, "the step has a result now: its child's report";
    StepFailed = "step-failed", Done, "the step is recorded as failed; its next reservation may replace its child";
    AlreadyEnded = "already-ended", Done, "the step had this end before; nothing changed";
    Reached = "reached", Done, "what was waited for is true";
    Recovered = "recovered", Done, "the pass did what may be done without guessing";

    Imported = "imported", Done, "what could be taken over is in this root now; `left` lists the rest";

    Installed = "installed", Done, "the agent's settings call this program now; `backup` is a copy of them from before";
    AlreadyInstalled = "already-installed", Done, "the agent's settings said so before; nothing changed";
    Uninstalled = "uninstalled", Done, "the agent's settings call this program no more";
    NotInstalled = "not-installed", Done, "the agent's settings did not call this program; nothing changed";
    // Done, of the continuation guard.
    Opened = "opened", Done, "the session is open, in a generation of its own";
    AlreadyOpen = "already-open", Done, "the session was open; nothing changed";
    Closed = "closed", Done, "the session is closed; late results are refused";
    AlreadyClosed = "already-closed", Done, "the session was closed; nothing changed";
    Restoring = "restoring", Done, "the session is being restored: nothing automatic may run until `--end`";
    Restored = "restored", Done, "the session is open again, without trust";
    PlanOn = "plan-on", Done, "the agent plans: nothing automatic goes on";
    PlanOff = "plan-off", Done, "the agent may act again; the guard stays suspended until an ordinary prompt";
    Suspended = "suspended", Done, "nothing automatic goes on until an ordinary prompt runs";
    RelocationReady = "relocation-ready", Done, "nothing runs any more that began before the move; move, then `--commit`";
    Relocated = "relocated", Done, "the session lives in the new directory, suspended";
    RelocationAborted = "relocation-aborted", Done, "the session stays where it is, suspended";
    NoMove = "no-move", Done, "the session is in that directory already; nothing changed";
    Submitted = "submitted", Done, "the prompt is running, or queued; `state` says which";
    AlreadySubmitted = "already-submitted", Done, "this prompt is in the queue already; nothing changed";
    PromptStarted = "prompt-started", Done, "the prompt runs now; nothing automatic goes before it";
    AlreadyStarted = "already-started", Done, "the prompt was running; nothing changed";
    PromptFinished = "prompt-finished", Done, "the prompt has its end";
    AlreadyFinished = "already-finished", Done, "the prompt had this end before; nothing changed";
    PromptRemoved = "prompt-removed", Done, "the prompt will not run; it keeps its place until it is the first";
    Granted = "granted", Done, "the continuation may be sent, once; say what became of it with `claim --ticket`";
    TicketRenewed = "ticket-renewed", Done, "the ticket lives on";
    TicketSettled = "ticket-settled", Done, "the ticket has its end";
    Released = "released", Done, "the wait is over: its queued prompt is gone, and the guard is suspended";
    Said = "said", Done, "the text lies in the inbox";
    AlreadySaid = "already-said", Done, "a text with this id came before; nothing changed";
    Drained = "drained", Done, "what was typed is in the answer, and kept until it is acknowledged";
    TodoCounted = "todo-counted", Done, "the to-do list was counted";
    TodoIgnored = "todo-ignored", Done, "the to-do list is not the main agent's own; nothing changed";
    Allow = "allow", Done, "the agent may stop";
    Continue = "continue", Done, "the agent goes on; `text` is what it is told";
    Yield = "yield", Done, "a person's prompt waits: the turn ends now, without a word";
    Deferred = "deferred", Done, "related work is still running in the background; nothing is charged";
    Exhausted = "exhausted", Done, "the budget is spent; this is said once";
    UserInput = "user-input", Done, "the person typed in the middle of the turn: the texts come first";
    BackgroundNoted = "background-noted", Done, "what lives in the background was noted";
    Queued = "queued", Done, "the item waits for a turn";
    AlreadyQueued = "already-queued", Done, "an item with this id came before; nothing changed";
    Omitted = "omitted", Done, "there was no place for the item; a gap notice stays until it is acknowledged";
    Taken = "taken", Done, "start a turn for the item, then acknowledge it";
    Acknowledged = "acknowledged", Done, "what arrived is forgotten";

    // Refused.
    NoTaskRecord = "no-task-record", Refused, "there is no row for this task (in `inspect`: a reason, exit 0)";
    TaskExists = "task-exists", Refused, "the task id is taken, for ever";
    Retired = "retired", Refused, "the attempt was retired for a workflow step; start a new task instead";
    StaleAttempt = "stale-attempt", Refused, "the task has another attempt now";
    StaleLaunch = "stale-launch", Refused, "the queued row was taken over by another launcher, or changed its attempt";
    StaleEpoch = "stale-epoch", Refused, "the task was stopped again since the expected epoch; or the run that a repeated Stop is about has gone on since";
    NotOwner = "not-owner", Refused, "this needs the token of that attempt";
    NotQueued = "not-queued", Refused, "only a queued task can be launched";
    NotInterrupted = "not-interrupted", Refused, "only an interrupted task can be reawakened or retired without a report";
    NotReported = "not-reported", Refused, "only a reported task can be reactivated or retired with its report";
    NotRunning = "not-running", Refused, "only a starting or running task with open admission can be re-driven";
    NotLaunched = "not-launched", Refused, "the task was not launched; a gated send is discharged";
    AttemptClosing = "attempt-closing", Refused, "admission is shut; something is still owed";
    AttemptSettled = "attempt-settled", Refused, "admission is shut for good; go on with a fresh attempt";
    AncestorStopped = "ancestor-stopped", Refused, "an ancestor is stopped; a gated send is discharged";
    AttemptLive = "attempt-live", Refused, "a turn or a send is still in flight; a gated send is discharged";
    AlreadyAdmitted = "already-admitted", Refused, "this send's turn was allowed before; whoever knows that it never started may settle it";
    TurnEnded = "turn-ended", Refused, "the send or turn has ended; its id is refused for ever";
    NoSuchSend = "no-such-send", Refused, "no such send was ever registered here";
    NoSuchTurn = "no-such-turn", Refused, "no such turn was ever admitted here";
    NoSuchCleanup = "no-such-cleanup", Refused, "no such cleanup was ever owed here";
    SendAdmitted = "send-admitted", Refused, "the send has a turn; settle the turn";
    UnownedSendUsed = "unowned-send-used", Refused, "an attempt without an owner gets one send, and it was used";
    OwnerAlive = "owner-alive", Refused, "the owner is alive and a turn is in flight";
    OwnerUnknown = "owner-unknown", Refused, "nobody can tell whether the owner is gone (in `inspect`: a reason, exit 0)";
    OwnerPidUnreadable = "owner-pid-unreadable", Refused, "the process given as owner cannot be read now";
    SourceNotTrue = "source-not-true", Refused, "the receipt source asked for is not what happened";
    LateReport = "late-report", Refused, "the report does not count; it is kept under `late/`, and counted on the row";
    NoTurnRunning = "no-turn-running", Refused, "the attempt has no admitted turn that could have made this report";
    SecondReport = "second-report", Refused, "the attempt published another report before; the first one stands";
    NoReport = "no-report", Refused, "there is no report to show";
    ReportPublished = "report-published", Refused, "a report exists, so the attempt cannot be retired without one";
    ReportNotBound = "report-not-bound", Refused, "the report was not published by the current attempt";
    CheckpointMismatch = "checkpoint-mismatch", Refused, "the task works for another run, step, input or parent";
    ClaimLost = "claim-lost", Refused, "the attempt is claimed for another checkpoint";
    ClaimSpent = "claim-spent", Refused, "the claim was spent; the replacement exists";
    Adopt = "adopt", Refused, "the step's child has reported: take its report";
    Reattach = "reattach", Refused, "the step's child is live, or queued and waits to be launched by whoever asks";
    Completed = "completed", Refused, "the step has a result";
    RunStopped = "run-stopped", Refused, "the run was stopped; `reserve --resume EPOCH` goes on on purpose";
    NoSuchStep = "no-such-step", Refused, "the run has no record of this step and input";
    StepEnded = "step-ended", Refused, "the step has another end already";
    EndedOtherwise = "ended-otherwise", Refused, "what was waited for can no longer come by itself";
    NotClaimed = "not-claimed", Refused, "the task to be replaced has no claim";
    StaleNonce = "stale-nonce", Refused, "a later grant of the claim voided this nonce";
    LegacyNotNeeded = "legacy-not-needed", Refused, "a task without an attempt id is not claimed";
    RequestIdReused = "request-id-reused", Refused, "this request id was used for another call";
    TokenFileExists = "token-file-exists", Refused, "the token file exists; a token is never written over";
    OutcomeDiffers = "outcome-differs", Refused, "the outcome is not the expected one";

    // Refused, of the continuation guard.
    NoSession = "no-session", Refused, "there is no session of this name";
    SessionOver = "session-over", Refused, "the session is closed; open it again first";
    PromptQueued = "prompt-queued", Refused, "a person's prompt waits and goes first; end the turn now";
    Unavailable = "unavailable", Refused, "nothing automatic may go on; `reason` says why";
    AlreadyGranted = "already-granted", Refused, "this call was answered before, and that answer authorised one send";
    QueueFull = "queue-full", Refused, "the session holds as many prompts as it may; finish or remove one";
    NoSuchPrompt = "no-such-prompt", Refused, "the session has no such prompt";
    PromptEnded = "prompt-ended", Refused, "the prompt has another end already";
    PromptNotRunning = "prompt-not-running", Refused, "the prompt does not run; remove it instead";
    PromptIsRunning = "prompt-is-running", Refused, "the prompt runs already and cannot be removed; finish it";
    NoSuchTicket = "no-such-ticket", Refused, "the session has no such ticket";
    TicketEnded = "ticket-ended", Refused, "the ticket has an end already";
    TicketVoid = "ticket-void", Refused, "the ticket was void when it was reported as sent: it is charged, and its stream must be cut";
    NoMatch = "no-match", Refused, "that prompt neither waits nor holds a ticket; nothing changed";
    TodoLate = "todo-late", Refused, "the to-do list comes from a turn that is over; the guard is suspended";
    NoSuchMark = "no-such-mark", Refused, "no such mark lies on that task";
    NothingQueued = "nothing-queued", Refused, "nothing waits for a turn";
    KeptBack = "kept-back", Refused, "something waits, and may not start a turn now; `reason` says why";
    NoSuchItem = "no-such-item", Refused, "no such item waits";
    NoRelocation = "no-relocation", Refused, "the session does not move";

    // Unresolved: the reasons `inspect` gives, and what a command that needs the evidence answers.
    Unresolved = "unresolved", Unresolved, "evidence is missing or contradictory; `reasonCode` names it";
    LegacyNoAttemptId = "legacy-no-attempt-id", Unresolved, "the task comes from a time before attempts had ids";
    UnownedNoReceipt = "unowned-no-receipt", Unresolved, "no receipt proves that this attempt is over";
    ReceiptUnreadable = "receipt-unreadable", Unresolved, "the receipt cannot be read, or is not this attempt's";
    ReportUnreadable = "report-unreadable", Unresolved, "a report is missing, damaged, or not the one the row names";
    OwnedUnsettled = "owned-unsettled", Unresolved, "the attempt has an owner that has not settled it";
    OwnerDeadUnsettled = "owner-dead-unsettled", Unresolved, "the owner is dead and the attempt is not settled";
    LineageUnproven = "lineage-unproven", Unresolved, "an earlier attempt was never proven over, so nothing proves this one is";
    NoSettlementEvidence = "no-settlement-evidence", Unresolved, "neither a receipt nor the owner's own settlement";
    ReportAfterSettlement = "report-after-settlement", Unresolved, "ALARM: a report appeared after the attempt was settled; the claim stands, nothing may be replaced";
    IdentityChanged = "identity-changed", Unresolved, "the task changed while it was being read";
    RecoveryIncomplete = "recovery-incomplete", Unresolved, "`--strict`: the pass had to leave something alone";

    // Pending.
    CleanupPending = "cleanup-pending", Pending, "the attempt is closing; ask again when what is owed is paid";
    NotYet = "not-yet", Pending, "what was waited for has not come in time";
    ObligationsOwed = "obligations-owed", Pending, "admission is shut now; turns or cleanups are still owed";
    PromptWaiting = "prompt-waiting", Pending, "the prompt's turn has not come; ask again";
    TicketOpen = "ticket-open", Pending, "an automatic send is under way; the prompt may start when its ticket has ended";
    Relocating = "relocating", Pending, "the session moves to another directory; ask again";
    SessionRestoring = "session-restoring", Pending, "the session is being restored; ask again";

    // Usage.
    AmbiguousRun = "ambiguous-run", Usage, "two sessions have a run of this name; say which with `--parent`";
    Usage = "usage", Usage, "the call is wrong; the message says where";
    ReportEmpty = "report-empty", Usage, "the report is blank, or standard input is a terminal";
    ReportTooLarge = "report-too-large", Usage, "the report is larger than 16 MiB";
    ReportNotText = "report-not-text", Usage, "the report is not UTF-8";
    TodoMalformed = "todo-malformed", Usage, "the to-do list is not in the strict envelope; nothing was changed";
    TextTooLarge = "text-too-large", Usage, "the text is larger than a session keeps; nothing was changed";
    TextEmpty = "text-empty", Usage, "the text is blank, or standard input is a terminal; nothing was changed";

    // Data.
    RowUnreadable = "row-unreadable", Data, "the row is damaged, or belongs to another task";
    RunUnreadable = "run-unreadable", Data, "the checkpoints of a run are damaged, or belong to another run";
    SessionUnreadable = "session-unreadable", Data, "the record of a session is damaged, or belongs to another session";
    NewerVersion = "newer-version", Data, "a newer version wrote this; it is read where that is possible, never written";
    RootDamaged = "root-damaged", Data, "a part of the root that must exist is missing or damaged";
    ForeignRoot = "foreign-root", Data, "this folder is not a lychgate root; set LYCHGATE_ROOT to one that is";
    NotXumRoot = "not-xum-root", Data, "the folder given with `--xum` is no root of that application; nothing was written";
    ConfigUnreadable = "config-unreadable", Data, "the `config.json` of the root given with `--xum` cannot be read; nothing was written";
    SettingsUnreadable = "settings-unreadable", Data, "an agent's settings are not what they should be; nothing was written";
    RootNotYours = "root-not-yours", Data, "the root belongs to another user; it is read, not written";
    NetworkFilesystem = "network-filesystem", Data, "the root is on a network or FUSE file system, where locks cannot be trusted";
    LinkRefused = "link-refused", Data, "a symbolic link lies inside the root";

    // The rest.
    Internal = "internal", Internal, "a bug in lychgate";
    Uncertain = "uncertain", Uncertain, "visible, but not proven durable; repeat with the same request id";
    AnswerNotDelivered = "answer-not-delivered", Uncertain, "the change is durable, but its answer could not be printed; repeat with the same request id";
    Io = "io", Io, "an I/O error; the old state stands";
    OutputUnusable = "output-unusable", Io, "standard output is closed or cannot be written; nothing was done";
    Busy = "busy", Busy, "a lock was not free in time; nothing was changed";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a receipt says ended the attempt (rule 30).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptSource {
    /// Turns were running when admission was shut, and the last of what was owed has ended.
    ExecutionSettled,
    /// Turns had been admitted and all had ended when admission was shut.
    IdleSettled,
    /// Launched, and no turn was ever admitted.
    LaunchFailed,
    /// Canceled before it was launched.
    ReservationCanceled,
    /// The reservation itself failed before it was launched.
    ReservationFailed,
}

impl ReceiptSource {
    /// Every source.
    pub const ALL: [Self; 5] = [
        Self::ExecutionSettled,
        Self::IdleSettled,
        Self::LaunchFailed,
        Self::ReservationCanceled,
        Self::ReservationFailed,
    ];

    /// The word on disk and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExecutionSettled => "execution-settled",
            Self::IdleSettled => "idle-settled",
            Self::LaunchFailed => "launch-failed",
            Self::ReservationCanceled => "reservation-canceled",
            Self::ReservationFailed => "reservation-failed",
        }
    }
}
