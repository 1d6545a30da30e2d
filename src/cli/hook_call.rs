//! Whether the arguments are a call of `hook AGENT`, also where they are wrong in every other respect: such a call
//! must never end with an exit status that the agent reads as "block".

use std::ffi::OsString;

use crate::dialect::Agent;

/// A call of `hook AGENT`, as far as it can be told from the arguments alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookCall {
    /// The agent; absent: the word is none we know.
    pub agent: Option<Agent>,
}

/// The first argument of the process that does the work of a hook call.
const WORKER: &str = "hook-worker";

/// What the process that works on a hook call is told by the one that the agent has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// When the event was told, by the boot clock, in milliseconds.
    pub started_ms: u64,
    /// Whether an answer reaches the agent. Where none does, nothing may be granted.
    pub heard: bool,
    /// The work was not done, for this reason. It is noted, and nothing else is done.
    pub trouble: Option<String>,
}

impl Worker {
    /// The arguments of the worker for a call with these arguments, the program's own name left out.
    pub fn args(&self, call: &[OsString]) -> Vec<OsString> {
        let heard = if self.heard { "heard" } else { "mute" };
        let trouble = self.trouble.clone().unwrap_or_default();
        let mut args: Vec<OsString> =
            vec![WORKER.into(), self.started_ms.to_string().into(), heard.into(), trouble.into()];
        args.extend(call.iter().skip(1).cloned());
        args
    }

    /// The other way: what the worker was told, and the arguments of the call.
    pub fn read(args: &[OsString]) -> Option<(Self, Vec<OsString>)> {
        let [program, first, started, heard, trouble, rest @ ..] = args else { return None };
        if first != WORKER {
            return None;
        }
        let started_ms = started.to_str()?.parse().ok()?;
        let own = std::iter::once(program).chain(rest).cloned().collect();
        let trouble = Some(trouble.to_string_lossy().into_owned()).filter(|trouble| !trouble.is_empty());
        Some((Self { started_ms, heard: heard == "heard", trouble }, own))
    }
}

/// The words after `hook` that are for people.
const FOR_PEOPLE: [&str; 4] = ["install", "uninstall", "doctor", "help"];
/// The global options that take a value.
const WITH_VALUE: [&str; 5] = ["--root", "--format", "--print", "--lock-wait", "--request-id"];

/// The hook call that these arguments make, if they make one.
pub fn hook_call(args: &[OsString]) -> Option<HookCall> {
    // What a supervisor has started is never supervised again, whatever is wrong with it: that would have no end.
    if args.get(1).is_some_and(|arg| arg == WORKER) {
        return None;
    }
    let words: Vec<&str> = args.iter().skip(1).map(|arg| arg.to_str().unwrap_or_default()).collect();
    let mut rest = words.as_slice();
    let command = loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        if WITH_VALUE.contains(first) {
            rest = rest.get(1..).unwrap_or_default();
        } else if !first.starts_with('-') {
            break *first;
        }
    };
    if command != "hook" || words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        return None;
    }
    let agent = rest.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
    if FOR_PEOPLE.contains(&agent) {
        return None;
    }
    let known = |name: &str| Agent::ALL.into_iter().find(|agent| agent.as_str() == name);
    let named = known(agent).or_else(|| rest.iter().find_map(|word| known(word)));
    Some(HookCall { agent: named })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Option<HookCall> {
        hook_call(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_worker_reads_what_it_is_told() {
        let call: Vec<OsString> = ["lychgate", "--root", "/r", "hook", "claude"].map(OsString::from).into();
        for (heard, trouble) in [(true, None), (false, Some("it died".to_owned()))] {
            let worker = Worker { started_ms: 17, heard, trouble };
            let mut args = vec![OsString::from("lychgate")];
            args.extend(worker.args(&call));
            assert_eq!(hook_call(&args), None, "a worker has no worker");
            assert_eq!(Worker::read(&args), Some((worker, call.clone())));
        }
        assert_eq!(Worker::read(&call), None);
    }

    #[test]
    fn a_hook_call_is_told_from_every_other_also_when_it_is_wrong() {
        let of = |agent| Some(HookCall { agent });
        assert_eq!(call("lychgate hook claude"), of(Some(Agent::Claude)));
        assert_eq!(call("lychgate --root /r hook gemini --guard"), of(Some(Agent::Gemini)));
        assert_eq!(call("lychgate --root hook hook codex --no-such-option"), of(Some(Agent::Codex)));
        assert_eq!(call("lychgate hook --bogus qwen"), of(Some(Agent::Qwen)));
        assert_eq!(call("lychgate hook"), of(None));
        assert_eq!(call("lychgate hook emacs"), of(None));
        assert_eq!(call("lychgate --json hook"), of(None));
        for other in
            ["lychgate hook install claude", "lychgate hook claude --help", "lychgate stop hook", "lychgate"]
        {
            assert_eq!(call(other), None, "{other}");
        }
    }
}
