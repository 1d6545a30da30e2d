//! A live owner is never taken for dead, whatever the process that looks is shown: other namespaces, hidden
//! processes, and files mounted over those that identify the boot. Each scene is a mount namespace of its own,
//! set up by a shell script in which `"$@"` is the call.

use std::process::{Command, Stdio};

use crate::actors::Owner;
use crate::common::{BIN, Outcome, TestRoot};

/// Plays a call inside a scene.
fn play(root: &TestRoot, scene: &str, args: &[&str]) -> Outcome {
    let child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-euc", scene, "sh", BIN])
        .args(args)
        .arg("--json")
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LYCHGATE_ROOT", root.path())
        .env("stage", root.scratch())
        .current_dir(root.scratch())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    root.finish(child.unwrap())
}

/// What a caller in the scene may be told about a live owner, and about a dead one.
struct Scene {
    name: &'static str,
    script: &'static str,
    dead: &'static str,
}

const SCENES: [Scene; 9] = [
    Scene { name: "nothing changed", script: r#""$@""#, dead: "no" },
    Scene {
        name: "a random boot id",
        script: r#"mount --bind /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id; "$@""#,
        dead: "unknown",
    },
    Scene {
        name: "a file mounted over the boot id",
        script: r#"echo 11111111-2222-4333-8444-555555555555 >"$stage/boot"
                   mount --bind "$stage/boot" /proc/sys/kernel/random/boot_id; "$@""#,
        dead: "unknown",
    },
    Scene {
        name: "another machine id",
        script: r#"echo 0123456789abcdef0123456789abcdef >"$stage/machine"
                   mount --bind "$stage/machine" /etc/machine-id; "$@""#,
        dead: "unknown",
    },
    Scene {
        name: "another time namespace",
        script: r#"unshare --time --boottime 5000 --fork "$@""#,
        dead: "no",
    },
    Scene {
        name: "another pid namespace with its own /proc",
        script: r#"unshare --pid --fork --mount-proc "$@""#,
        dead: "unknown",
    },
    Scene {
        name: "another pid namespace behind the /proc of the former one",
        script: r#"unshare --pid --fork "$@""#,
        dead: "unknown",
    },
    Scene {
        name: "hidden processes",
        script: r#"mount -t proc -o hidepid=2 proc /proc
                   setpriv --bounding-set=-sys_ptrace,-kill "$@""#,
        dead: "no",
    },
    Scene {
        name: "an empty folder over /proc",
        script: r#"mkdir -p "$stage/nothing"; mount --bind "$stage/nothing" /proc; "$@""#,
        dead: "unknown",
    },
];

#[test]
fn a_live_owner_is_never_taken_for_dead_whatever_the_caller_is_shown() {
    let root = TestRoot::new();
    let owner = Owner::of_another_user();
    let at_work = root.reserve_for("at-work", &owner).launched();
    let _ = at_work.turn();
    let starting = root.reserve_for("starting", &owner).launched();
    let closing = root.reserve_for("closing", &owner).launched();
    let _ =
        root.json(&["stop", "closing", "--cleanup", "tree", "--owner-pid", &owner.pid()]).is(0, "stopping");
    let rows = || ["at-work", "starting", "closing"].map(|task| root.row(task));
    let before = rows();
    for scene in &SCENES {
        for task in [&at_work, &starting, &closing] {
            let alive = play(&root, scene.script, &["inspect", &task.id]).get("owner.alive");
            assert!(matches!(alive.as_str(), "yes" | "unknown"), "{}: {alive}", scene.name);
        }
        let swept = play(&root, scene.script, &["recover"]).is(0, "recovered");
        assert_eq!(swept.get("recovered"), "[]", "{}: {swept}", scene.name);
        for task in ["at-work", "starting"] {
            let startup = play(&root, scene.script, &["rotate", task, "--as", "startup"]);
            assert!(
                matches!(startup.code().as_str(), "owner-alive" | "owner-unknown"),
                "{}: {startup}",
                scene.name
            );
        }
        let awake = play(&root, scene.script, &["rotate", "closing", "--as", "reawaken"]);
        let _ = awake.is(12, "cleanup-pending");
        assert_eq!(rows(), before, "{}", scene.name);
    }
}

#[test]
fn a_dead_owner_is_taken_for_dead_only_where_that_is_proven() {
    let root = TestRoot::new();
    let mut owner = Owner::of_another_user();
    let task = root.reserve_for("t", &owner).launched();
    owner.kill();
    for scene in &SCENES {
        let alive = play(&root, scene.script, &["inspect", "t"]).get("owner.alive");
        assert_eq!(alive, scene.dead, "{}", scene.name);
        if scene.dead == "unknown" {
            let _ = play(&root, scene.script, &["rotate", "t", "--as", "startup"]).is(10, "owner-unknown");
        }
    }
    drop(task);
}
