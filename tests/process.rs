//! Whether a process can be taken for dead where the kernel shows something else than usual: in other
//! namespaces, behind `hidepid`, and with files mounted over those that identify machine, boot and process.
//!
//! Each scene is set up by a shell script in a mount namespace of its own. The program under observation is
//! this test program again, which runs only [`probe`] there and reports on standard error.

#![cfg(target_os = "linux")]
#![allow(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test program reads its own environment"
)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lychgate::protocol::row::ProcessRef;
use lychgate::state::process::{Here, Life, describe, observe};

/// What [`probe`] is to do. Absent: it is an ordinary test run, and there is nothing to do.
const PROBE: &str = "LYCHGATE_TEST_PROBE";
/// The records that the probe observes, as a JSON array.
const RECORDS: &str = "LYCHGATE_TEST_RECORDS";

/// Not a test of its own: what this program does when it is started again inside a scene.
#[test]
fn probe() {
    let Ok(task) = std::env::var(PROBE) else {
        return;
    };
    let here = Here::new();
    if let Some(pid) = task.strip_prefix("describe ") {
        let pid = pid.parse().expect("the pid is a number");
        let record = describe(pid, &here).expect("the process is readable");
        eprintln!("PROBE {}", serde_json::to_string(&record).expect("a record is JSON"));
        return;
    }
    let records = std::env::var(RECORDS).expect("there are records to observe");
    let records: Vec<ProcessRef> = serde_json::from_str(&records).expect("they are records");
    for record in &records {
        say(&observe(record, &here, true));
    }
    if task == "observe and try" {
        let mut child = sleeper();
        let record = describe(child.id(), &here);
        match &record {
            Ok(record) => say(&observe(record, &Here::new(), true)),
            Err(error) => eprintln!("PROBE Refused {error}"),
        }
        end(&mut child);
        match &record {
            Ok(record) => say(&observe(record, &Here::new(), true)),
            Err(_) => eprintln!("PROBE Refused"),
        }
    }
}

fn say(life: &Life) {
    let word = match life {
        Life::Alive(_) => "Alive",
        Life::Dead(_) => "Dead",
        Life::Unknown(_) => "Unknown",
    };
    eprintln!("PROBE {word} {}", life.why());
}

fn sleeper() -> Child {
    Command::new("sleep")
        .arg("600")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("`sleep` starts")
}

fn end(child: &mut Child) {
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be reaped");
}

/// A folder that any user can read, with a copy of this program.
struct Stage {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Stage {
    /// Returns none, after saying why, where the scenes cannot be set up. Under CI that is a failure.
    fn set_up() -> Option<Self> {
        if let Some(why) = obstacle() {
            eprintln!("skipped: {why}");
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "these tests must run under CI: {why}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder can be made");
        let program = folder.path().join("probe");
        let this_program = std::env::current_exe().expect("this program has a path");
        fs_err::copy(this_program, &program).expect("it can be copied");
        for path in [folder.path(), &program] {
            fs_err::set_permissions(path, Permissions::from_mode(0o755)).expect("it can be opened to all");
        }
        Some(Self { folder, program })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Plays a script in a mount namespace of its own. In it, `"$@"` is the probe and `$stage` our folder.
    fn play(&self, script: &str, task: &str, records: &[ProcessRef]) -> Vec<String> {
        let output = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-euc", script, "sh"])
            .arg(&self.program)
            .args(["--exact", "probe", "--nocapture"])
            .env(PROBE, task)
            .env(RECORDS, serde_json::to_string(records).expect("records are JSON"))
            .env("stage", self.path())
            .output()
            .expect("`unshare` starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{}\n{stderr}", String::from_utf8_lossy(&output.stdout));
        stderr.lines().filter_map(|line| line.strip_prefix("PROBE ")).map(str::to_owned).collect()
    }
}

fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can set up the namespaces".to_owned());
    }
    let here = Here::new();
    if here.machine_id().is_none() || here.boot_id().is_none() {
        return Some("machine id and boot id cannot be trusted here in the first place".to_owned());
    }
    let needed = ["--mount", "--pid", "--time", "--boottime", "1", "--fork", "--mount-proc"];
    match Command::new("unshare").args(needed).args(["setpriv", "--reuid=65534", "true"]).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("`unshare` cannot be started: {error}")),
    }
}

/// What the probe is to say, in its order.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    /// About a living process that was recorded outside.
    live: &'static str,
    /// About a dead one that was recorded outside.
    dead: &'static str,
    /// About a child of the probe, recorded in the scene, while it lives.
    own_live: &'static str,
    /// About that child after its end.
    own_dead: &'static str,
}

const ALL_UNKNOWN: Answers =
    Answers { live: "Unknown", dead: "Unknown", own_live: "Unknown", own_dead: "Unknown" };
const AS_USUAL: Answers = Answers { live: "Alive", dead: "Dead", own_live: "Alive", own_dead: "Dead" };

fn scenes() -> Vec<(&'static str, &'static str, Answers)> {
    let elsewhere = |live, dead| Answers { live, dead, ..AS_USUAL };
    vec![
        ("nothing changed", r#""$@""#, AS_USUAL),
        (
            "/proc/sys read-only, as in containers",
            r#"mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; "$@""#,
            AS_USUAL,
        ),
        (
            "another pid namespace with its own /proc",
            r#"unshare --pid --fork --mount-proc "$@""#,
            elsewhere("Unknown", "Unknown"),
        ),
        (
            "another pid namespace with the /proc of the former one",
            r#"unshare --pid --fork "$@""#,
            Answers { own_live: "Refused", own_dead: "Refused", ..ALL_UNKNOWN },
        ),
        (
            "another time namespace",
            r#"unshare --time --boottime 5000 --fork "$@""#,
            elsewhere("Unknown", "Dead"),
        ),
        (
            "processes hidden from another user",
            r#"mount -t proc -o hidepid=2 proc /proc; setpriv --reuid=65534 --regid=65534 --clear-groups "$@""#,
            elsewhere("Unknown", "Dead"),
        ),
        (
            "a regular file over the boot id",
            r#"echo 11111111-2222-4333-8444-555555555555 >"$stage/boot"
               mount --bind "$stage/boot" /proc/sys/kernel/random/boot_id; "$@""#,
            ALL_UNKNOWN,
        ),
        (
            "a random boot id",
            r#"mount --bind /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id; "$@""#,
            ALL_UNKNOWN,
        ),
        (
            "a constant file of /proc over the boot id",
            r#"mount --bind /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/boot_id; "$@""#,
            ALL_UNKNOWN,
        ),
        (
            "a folder over the boot id's, with a file in it",
            r#"mount -t tmpfs none /proc/sys/kernel/random
               echo 11111111-2222-4333-8444-555555555555 >/proc/sys/kernel/random/boot_id; "$@""#,
            ALL_UNKNOWN,
        ),
        (
            "a folder over the boot id's, with a link in it",
            r#"mount -t tmpfs none /proc/sys/kernel/random
               ln -s /proc/sys/kernel/hostname /proc/sys/kernel/random/boot_id; "$@""#,
            ALL_UNKNOWN,
        ),
        (
            "another machine",
            r#"echo 0123456789abcdef0123456789abcdef >"$stage/machine"
               mount --bind "$stage/machine" /etc/machine-id; "$@""#,
            elsewhere("Unknown", "Unknown"),
        ),
        ("no machine id", r#"mount --bind /dev/null /etc/machine-id; "$@""#, ALL_UNKNOWN),
        (
            "another machine and another boot id",
            r#"echo 0123456789abcdef0123456789abcdef >"$stage/other"
               mount --bind "$stage/other" /etc/machine-id
               mount --bind /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id; "$@""#,
            ALL_UNKNOWN,
        ),
        (
            "the start time of another process",
            r#"mount --bind /proc/1/stat "/proc/$live/stat"; "$@""#,
            elsewhere("Unknown", "Dead"),
        ),
        (
            "the folder of another process",
            r#"mount --bind /proc/1 "/proc/$live"; "$@""#,
            elsewhere("Unknown", "Dead"),
        ),
        (
            "something else at /proc",
            r#"mount -t tmpfs none /proc; "$@""#,
            Answers { own_live: "Refused", own_dead: "Refused", ..ALL_UNKNOWN },
        ),
        (
            "a part of /proc at /proc",
            r#"mount --bind /proc/sys /proc; "$@""#,
            Answers { own_live: "Refused", own_dead: "Refused", ..ALL_UNKNOWN },
        ),
    ]
}

#[test]
fn a_living_process_is_dead_in_no_scene_and_a_dead_one_where_the_kernel_vouches_for_it() {
    let Some(stage) = Stage::set_up() else {
        return;
    };
    let here = Here::new();
    let (mut live, mut dead) = (sleeper(), sleeper());
    let records = [live.id(), dead.id()].map(|pid| describe(pid, &here).expect("a child is readable"));
    end(&mut dead);
    let mut wrong = Vec::new();
    for (name, script, expected) in scenes() {
        let script = format!("live={}; {script}", live.id());
        let said = stage.play(&script, "observe and try", &records);
        let words: Vec<_> = said.iter().filter_map(|line| line.split(' ').next()).collect();
        if words != [expected.live, expected.dead, expected.own_live, expected.own_dead] {
            wrong.push(format!("{name}: {said:#?}, not {expected:?}"));
        }
    }
    end(&mut live);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lets the shell keep what the probe says about a process: `record=$(record_of PID)`, then `observe`.
const SHELL: &str = r#"
    record_of() { LYCHGATE_TEST_PROBE="describe $1" "$program" --exact probe --nocapture 2>&1 | sed -n 's/^PROBE //p'; }
    observe() { LYCHGATE_TEST_RECORDS="[$record]" "$program" --exact probe --nocapture; }
    program=$1
"#;

#[test]
fn the_numbers_of_another_proc_are_not_taken_for_ours() {
    let Some(stage) = Stage::set_up() else {
        return;
    };
    // Within one pid namespace: recorded under its own /proc, observed under the one of the namespace outside,
    // where the same number names somebody else with another start time.
    let script = format!(
        r#"exec unshare --pid --fork --mount --propagation private sh -euc '{}
           mount -t proc proc /proc; sleep 600 & record=$(record_of $!); observe; umount /proc; observe' sh "$1""#,
        SHELL.replace('\'', r"'\''")
    );
    let said = stage.play(&script, "observe", &[]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.first().is_some_and(|line| line.starts_with("Alive ")), "{said:?}");
    assert!(said.last().is_some_and(|line| line.starts_with("Unknown ")), "{said:?}");
}

#[test]
fn a_pid_that_was_given_to_a_later_process_is_a_dead_one() {
    let Some(stage) = Stage::set_up() else {
        return;
    };
    let script = format!(
        r#"exec unshare --pid --fork --mount-proc sh -euc '{}
           sleep 600 & pid=$!; record=$(record_of $pid); kill $pid; wait $pid || true; sleep 0.1
           echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid || true
           sleep 600 & echo "PROBE $pid $!" >&2; observe' sh "$1""#,
        SHELL.replace('\'', r"'\''")
    );
    let said = stage.play(&script, "observe", &[]);
    let pids: Vec<_> = said.first().expect("the pids are told").split(' ').collect();
    let life = said.last().expect("there is an answer");
    assert!(life.starts_with("Dead "), "{said:?}");
    // Where the kernel does not let us choose a pid, the proof is the ordinary one.
    if pids.first() == pids.last() {
        assert!(life.contains("started at another time"), "{said:?}");
    }
}

#[test]
fn a_time_namespace_with_the_number_of_a_former_one_is_another_one() {
    let Some(stage) = Stage::set_up() else {
        return;
    };
    let mut live = sleeper();
    let within = |offset: u32| format!(r#"exec unshare --time --boottime {offset} --fork "$@""#);
    let record = stage.play(&within(100), &format!("describe {}", live.id()), &[]);
    let record: ProcessRef =
        serde_json::from_str(record.first().expect("it was recorded")).expect("it is a record");
    let namespace = record.time_namespace.as_deref().expect("the time namespace is known");
    assert!(namespace.ends_with(" boottime 100s 0ns"), "{namespace}");
    // The kernel gives the lowest free number, so this one usually gets the same.
    let said = stage.play(&within(5000), "observe", std::slice::from_ref(&record));
    assert!(said.first().is_some_and(|line| line.starts_with("Unknown ")), "{said:?}");
    end(&mut live);
    let said = stage.play(&within(5000), "observe", &[record]);
    assert!(said.first().is_some_and(|line| line.starts_with("Dead ")), "{said:?}");
}
