//! A disk without room: the old state stands, the reason is named, nothing is left over, and there is no repair to
//! do once there is room again (A47).

use std::process::Command;

use super::{Raw, documented};
use crate::common::{BIN, TestRoot};

/// Runs a script with a small memory file system mounted at `$R`'s parent, in a mount namespace of its own.
fn on_small_disk(root: &TestRoot, size: &str, script: &str) -> Raw {
    let prelude = r#"
        set -u; unset LYCHGATE_TEST_SEED
        mkdir -p "$M"; mount -t tmpfs -o "size=$SIZE,mode=755" none "$M" || exit 99
        export LYCHGATE_ROOT="$M/root"
        fail() { echo "FAILED: $*" >&2; exit 98; }
        is() { [ "$1" = "$2" ] || fail "$3: $1, not $2"; }
        lg() { "$LG" --json "$@" >out 2>err; rc=$?; case $rc in 0|10|11|12|64|65|71|74|75) ;; *) fail "exit $rc of $*: $(cat out err)";; esac; }
        get() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' out; }
        fill() { dd if=/dev/zero of="$M/fill" bs=4k status=none 2>/dev/null; : ; }
        files() { find "$M/root" -type f -exec sha256sum {} + | sort; }
        temps() { find "$M" \( -name '.lych-*' -o -name '.atomicwrite*' -o -name '.tmp*' \) | wc -l; }
        refused() { is $rc 74 "$(cat out)"; grep -qi 'no space' out || fail "the reason is not named: $(cat out)"; }
    "#;
    let ours = root.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "bash", "-c", &format!("{prelude}{script}")]).env_clear();
    for (name, value) in ours.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("LG", BIN).env("M", root.file("disk")).env("SIZE", size).current_dir(root.scratch());
    let output = command.output().unwrap();
    let raw = Raw::new(output, "on a small disk".to_owned());
    documented(raw).exits(0)
}

#[test]
fn a_full_disk_keeps_the_old_state_and_needs_no_repair() {
    let root = TestRoot::new();
    let script = r#"
        lg reserve t1 --parent ws; is $rc 0 reserve; A=$(get attemptId) T=$(get token)
        lg rotate t1 --as launch --token $T; is $rc 0 launch
        lg admit t1 --attempt $A --start --token $T; is $rc 0 admit; U=$(get turnId)
        before=$(files); fill
        head -c 100000 /dev/zero | tr '\0' x >report
        lg report t1 --attempt $A --token $T --file report; refused
        echo short >short
        lg report t1 --attempt $A --token $T --file short; refused
        lg reserve t2 --parent ws; refused
        lg admit t1 --attempt $A --token $T; refused
        lg admit t1 --attempt $A --start --token $T; refused
        lg settle t1 --turn $U --close --token $T; refused
        lg settle t1 --token $T; refused
        lg stop t1 --reason full; refused
        lg rotate t1 --as startup --unproven; [ $rc = 74 ] || [ $rc = 10 ] || fail "rotate $rc"
        lg recover t1 --unproven; [ $rc = 74 ] || [ $rc = 0 ] || fail "recover $rc"
        lg inspect t1; is $rc 0 inspect; is "$(get outcome)" indeterminate outcome
        lg inspect; is $rc 0 inspect-all
        is "$(files)" "$before" "not a byte changed"
        is "$(temps)" 0 "nothing is left over"
        lg reserve t3 --parent ws --token-file "$M/tokens"; is $rc 74 token-file
        [ ! -e "$M/tokens" ] || fail "a token of an attempt that never was"
        rm "$M/fill"
        lg report t1 --attempt $A --token $T --file report; is $rc 0 report
        lg reserve t2 --parent ws; is $rc 0 reserve
        lg stop t1; is $rc 0 stop
        lg settle t1 --turn $U --token $T; is $rc 0 settle
        is "$(temps)" 0 "nothing is left over"
    "#;
    let _ = on_small_disk(&root, "512k", script);
}

/// The room ends at every place of a commit in turn.
#[test]
fn room_that_ends_anywhere_leaves_the_old_or_the_new_state() {
    let root = TestRoot::new();
    let script = r#"
        lg reserve t1 --parent ws; A=$(get attemptId) T=$(get token)
        lg rotate t1 --as launch --token $T; lg admit t1 --attempt $A --start --token $T; U=$(get turnId)
        head -c 30000 /dev/zero | tr '\0' x >report; n=0 done=0
        fill
        while [ $n -lt 60 ] && [ $done = 0 ]; do
            before=$(files)
            lg report t1 --attempt $A --token $T --file report
            if [ $rc = 0 ]; then done=1; else
                refused; is "$(files)" "$before" "not a byte changed"; is "$(temps)" 0 litter
            fi
            n=$((n + 1)); truncate -s -4096 "$M/fill"
        done
        is $done 1 "it is done once there is room"; [ $n -gt 3 ] || fail "the room never ended"
        fill; done=0 n=0
        while [ $n -lt 60 ] && [ $done = 0 ]; do
            before=$(files)
            lg settle t1 --turn $U --close --token $T
            if [ $rc = 0 ]; then done=1; else
                refused; is "$(files)" "$before" "not a byte changed"; is "$(temps)" 0 litter
            fi
            n=$((n + 1)); truncate -s -4096 "$M/fill"
        done
        is $done 1 "settled once there is room"; [ $n -gt 1 ] || fail "the room never ended"
        rm "$M/fill"; lg inspect t1; is "$(get outcome)" reported outcome
    "#;
    let _ = on_small_disk(&root, "384k", script);
}

/// A root that could not be made is made by the next call, wherever the first one stopped.
#[test]
fn a_root_that_found_no_room_is_made_later() {
    let root = TestRoot::new();
    let script = r#"
        n=0 done=0; : >"$M/fill"; fill
        while [ $n -lt 60 ] && [ $done = 0 ]; do
            lg reserve t1 --parent ws
            if [ $rc = 0 ]; then done=1; else
                refused
                [ -z "$(get token)" ] || fail "a token of no attempt"
                lg inspect t1; is $rc 0 inspect; is "$(get reasonCode)" no-task-record reason
            fi
            n=$((n + 1)); truncate -s -4096 "$M/fill"
        done
        is $done 1 "it is made once there is room"; [ $n -gt 2 ] || fail "the room never ended"
        is "$(temps)" 0 litter; rm "$M/fill"; lg inspect t1; is "$(get outcome)" live outcome
    "#;
    let _ = on_small_disk(&root, "256k", script);
}

/// No inode left is as bad as no block left.
#[test]
fn a_disk_without_inodes_is_full() {
    let root = TestRoot::new();
    let script = r#"
        lg reserve t1 --parent ws; is $rc 0 reserve; T=$(get token)
        before=$(files); i=0; while : >"$M/i$i"; do i=$((i + 1)); done 2>/dev/null
        lg stop t1; refused
        lg reserve t2 --parent ws; refused
        is "$(files)" "$before" "not a byte changed"
        rm "$M"/i*; lg stop t1; is $rc 0 stop
    "#;
    let _ = on_small_disk(&root, "512k,nr_inodes=40", script);
}

/// The room for spooling a large report can end before anything else does.
#[test]
fn a_report_that_cannot_be_spooled_names_the_reason() {
    let root = TestRoot::new();
    let script = r#"
        lg reserve t1 --parent ws; A=$(get attemptId) T=$(get token)
        lg rotate t1 --as launch --token $T; lg admit t1 --attempt $A --start --token $T
        before=$(files)
        head -c 4000000 /dev/zero | tr '\0' x >report
        lg report t1 --attempt $A --token $T --file report; refused
        "$LG" --json report t1 --attempt $A --token $T <report >out 2>err; rc=$?; refused
        is "$(files)" "$before" "not a byte changed"; is "$(temps)" 0 litter
        # What was spooled is given back when the call ends.
        head -c 100000 /dev/zero | tr '\0' x >report
        lg report t1 --attempt $A --token $T --file report; is $rc 0 report
    "#;
    let _ = on_small_disk(&root, "1m", script);
}
