//! A session's life, and what a call costs: H57, H59, H81 and H83.

use serde_json::{Value, json};

use super::Agent;
use crate::common::{BIN, TestRoot};
use crate::guard::Session;

#[test]
fn h57_a_session_that_never_says_it_ends_leaves_nothing_that_holds_for_ever() {
    let root = TestRoot::new();
    let (s, prompt) = Session::at_work(&root, "s");
    let ticket = s.ticket(&prompt);
    let _ = s.finish("p1", "completed").is(0, "prompt-finished");
    let next = s.submit("p2");
    assert_eq!(next.get("state"), "queued");
    let waits = s.prompt("start", &["p2"]).is(12, "ticket-open");
    assert!(waits.get("leftMs").parse::<u64>().unwrap() <= 60_000);
    // Nobody says what became of it. Its time is over, and it counts as sent.
    root.later(60_000);
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
    assert_eq!(s.end(&ticket, "sent").is(10, "ticket-ended").get("end"), "lapsed");
    // Another session was never kept waiting by it.
    let (other, prompt) = Session::at_work(&root, "other");
    let _ = other.ticket(&prompt);
}

#[test]
fn h57_many_sessions_that_end_at_once_are_each_closed() {
    let root = TestRoot::new();
    let ids = ["s0", "s1", "s2", "s3", "s4", "s5"];
    let agents = ids.map(|id| Agent::claude(&root, id));
    for agent in &agents {
        agent.prompt("hi");
    }
    let children: Vec<_> = agents
        .iter()
        .map(|agent| {
            use std::io::Write as _;
            let mut child = agent.command().spawn().unwrap();
            let payload = agent.payload("SessionEnd", &json!({ "reason": "other" })).to_string();
            child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
            child
        })
        .collect();
    for child in children {
        let out = root.finish(child);
        assert_eq!((out.exit, out.stdout.as_str()), (0, ""), "{out}");
        // Where the machine was too slow, the agent was let go, and the session is one that never said so.
        assert!(out.stderr.is_empty() || out.stderr.contains("in time"), "{out}");
    }
    let closed = agents.iter().filter(|agent| agent.books().record()["state"] == "closed").count();
    assert!(closed > 0);
    // A session that goes on after its end is a generation of its own, with the same name.
    let again = &agents[0];
    again.work();
    assert_eq!(again.stops(3), 2);
}

/// A stop with a trace of these system calls, of the call and all it starts.
fn traced(agent: &Agent<'_>, calls: &str, more: &Value) -> String {
    let log = agent.root.file("trace");
    let hook = agent.command();
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-qq", "-o", &log, "-e", calls]).arg(BIN).args(hook.get_args()).env_clear();
    command.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let payload = agent.payload("Stop", more).to_string();
    let _ = agent.run(command, payload.as_bytes());
    std::fs::read_to_string(&log).unwrap()
}

#[test]
fn h59_an_answer_rests_on_the_root_alone() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    // A transcript that can be opened and never read to its end.
    let transcript = root.file("transcript");
    assert!(std::process::Command::new("mkfifo").arg(&transcript).status().unwrap().success());
    let more = json!({ "transcript_path": transcript, "cwd": root.file("no-such-folder") });
    let trace = traced(&agent, "trace=socket,connect,execve,execveat,openat,open", &more);
    assert!(!trace.contains("socket(") && !trace.contains("connect("), "{trace}");
    assert!(!trace.contains("transcript"), "{trace}");
    let programs: Vec<&str> = trace.lines().filter(|line| line.contains("execve")).collect();
    let ours = |line: &&&str| line.contains(BIN) || line.contains("/proc/self/exe");
    assert_eq!(
        programs.len(),
        programs.iter().filter(ours).count(),
        "no shell, no other program: {programs:?}"
    );
    assert!(programs.len() <= 2, "the one that answers and the one that works: {programs:?}");
    let before = usize::try_from(agent.attempts()).unwrap();
    assert_eq!(agent.stops(3), 2 - before, "what was charged was granted");
}

#[test]
fn h83_what_a_call_costs_does_not_grow_with_its_neighbours() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let files =
        "trace=openat,open,stat,newfstatat,statx,rename,renameat,renameat2,fsync,fdatasync,unlink,unlinkat";
    let count = |agent: &Agent<'_>| {
        agent.work();
        // Only what concerns the root: loaders and the kernel's files differ from machine to machine.
        let trace = traced(agent, files, &json!({}));
        trace.lines().filter(|line| line.contains("root") || line.contains("fsync")).count()
    };
    let alone = count(&agent);
    for n in 0..20 {
        let name: &'static str = format!("neighbour-{n}").leak();
        let _ = Session { root: &root, id: name }.session("open", &["--guard"]).is(0, "opened");
    }
    let among_many = count(&agent);
    assert!(among_many <= alone + 2, "{alone} and then {among_many}");
    assert!(alone > 0);
}

#[test]
fn h81_a_stop_while_work_goes_on_in_the_background_continues_nothing_and_charges_nothing() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let running = json!([{ "id": "b1", "type": "shell", "status": "running" }]);
    assert!(!agent.stop_with(&json!({ "background_tasks": running })).goes_on());
    assert_eq!(agent.attempts(), 0);
    let s = agent.books();
    // Nobody continues on its account while it lives, neither later nor by asking otherwise.
    root.later(600_000);
    assert_eq!(s.call("claim", &[]).is(10, "unavailable").get("reason"), "background-running");
    // It ends: the news may start one turn.
    let _ = s.call("background", &["end", "b1"]).is(0, "background-noted");
    let _ = s
        .call("notify", &["put", "--id", "done-b1", "--task", "b1", "--status", "completed"])
        .is(0, "queued");
    let _ = s.call("notify", &["take"]).is(0, "taken");
    let _ = s.call("notify", &["ack", "done-b1"]).is(0, "acknowledged");
    let _ = s.call("claim", &["--woken-by", "completed"]).is(0, "granted");
    let _ = s.call("notify", &["take"]).is(10, "nothing-queued");
}

#[test]
fn h81_a_persons_prompt_goes_before_the_news_of_a_background_task() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let running = json!([{ "id": "b1", "type": "shell", "status": "running" }]);
    assert!(!agent.stop_with(&json!({ "background_tasks": running })).goes_on());
    let s = agent.books();
    agent.prompt("never mind that");
    let news = s.call("claim", &["--woken-by", "completed"]).is(10, "unavailable");
    assert_eq!(news.get("reason"), "prompt-live");
    agent.todo(&["pending"]);
    // What is over, or an empty list, is an ordinary stop; and b1 belonged to the turn before.
    assert!(agent.stop_with(&json!({ "background_tasks": running })).goes_on());
    let over = json!([{ "id": "b2", "type": "shell", "status": "completed" }]);
    assert!(agent.stop_with(&json!({ "background_tasks": over })).goes_on());
    assert!(!agent.stop_with(&json!({ "background_tasks": [] })).goes_on(), "the budget is spent");
}
