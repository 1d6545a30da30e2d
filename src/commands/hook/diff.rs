//! A unified diff of two texts, for people.

use std::fmt::Write as _;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// Where the table of the comparison would have more cells than this, everything between the first and the last
/// difference is shown as changed.
const CELLS_MAX: usize = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

/// The changes from one text to the other; empty where there are none.
pub(super) fn unified(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let lines = compared(&lines(old), &lines(new));
    let mut text = format!("--- {name}\n+++ {name}\n");
    let mut next = 0;
    while let Some(first) = lines.iter().skip(next).position(|(side, _)| *side != Side::Both) {
        let start = (next + first).saturating_sub(CONTEXT).max(next);
        let end = hunk_end(&lines, next + first);
        let numbers = |side| {
            let counted = |part: &[(Side, &str)]| part.iter().filter(|(found, _)| *found != side).count();
            let before = counted(lines.get(..start).unwrap_or_default());
            let count = counted(lines.get(start..end).unwrap_or_default());
            format!("{},{count}", if count == 0 { before } else { before + 1 })
        };
        let _: std::fmt::Result = writeln!(text, "@@ -{} +{} @@", numbers(Side::New), numbers(Side::Old));
        for (side, line) in lines.get(start..end).unwrap_or_default() {
            let mark = match side {
                Side::Both => ' ',
                Side::Old => '-',
                Side::New => '+',
            };
            let _: std::fmt::Result = writeln!(text, "{mark}{line}");
        }
        next = end;
    }
    text
}

/// The end of the hunk that begins with the change at `first`: changes closer together than their context are one.
fn hunk_end(lines: &[(Side, &str)], first: usize) -> usize {
    let mut end = first;
    for (index, (side, _)) in lines.iter().enumerate().skip(first) {
        if *side != Side::Both {
            end = index + 1;
        } else if index >= end + 2 * CONTEXT {
            break;
        }
    }
    (end + CONTEXT).min(lines.len())
}

/// The lines of a text. That a last line has no end is told, because it is a difference.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    if !text.is_empty() && !text.ends_with('\n') {
        lines.push("\\ no line end");
    }
    lines
}

/// Both texts in one list, by their longest common subsequence.
fn compared<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Side, &'t str)> {
    let same_start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (head, old) = old.split_at(same_start);
    let new = new.get(same_start..).unwrap_or_default();
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, tail) = old.split_at(old.len() - same_end);
    let new = new.get(..new.len() - same_end).unwrap_or_default();
    let mut lines: Vec<(Side, &str)> = head.iter().map(|line| (Side::Both, *line)).collect();
    lines.extend(between(old, new));
    lines.extend(tail.iter().map(|line| (Side::Both, *line)));
    lines
}

fn between<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Side, &'t str)> {
    let width = new.len() + 1;
    let mut lengths =
        if old.len() * width > CELLS_MAX { vec![] } else { vec![0_u32; (old.len() + 1) * width] };
    let at =
        |lengths: &[u32], row: usize, column: usize| lengths.get(row * width + column).copied().unwrap_or(0);
    for (row, old_line) in old.iter().enumerate().rev() {
        for (column, new_line) in new.iter().enumerate().rev() {
            let length = if old_line == new_line {
                at(&lengths, row + 1, column + 1) + 1
            } else {
                at(&lengths, row + 1, column).max(at(&lengths, row, column + 1))
            };
            if let Some(cell) = lengths.get_mut(row * width + column) {
                *cell = length;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (old.get(row), new.get(column)) {
            (Some(one), Some(other)) if one == other && !lengths.is_empty() => {
                lines.push((Side::Both, *one));
                (row, column) = (row + 1, column + 1);
            }
            (Some(one), other)
                if other.is_none() || at(&lengths, row + 1, column) >= at(&lengths, row, column + 1) =>
            {
                lines.push((Side::Old, *one));
                row += 1;
            }
            (_, Some(other)) => {
                lines.push((Side::New, *other));
                column += 1;
            }
            (_, None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_shown_with_what_stands_around_it() {
        let old = (1..=20).fold(String::new(), |text, n| format!("{text}{n}\n"));
        let new = old.replace("\n3\n", "\nthree\n").replace("17\n", "").replace("20\n", "20");
        insta::assert_snapshot!(unified("f", &old, &new), @r"
        --- f
        +++ f
        @@ -1,6 +1,6 @@
         1
         2
        -3
        +three
         4
         5
         6
        @@ -14,7 +14,7 @@
         14
         15
         16
        -17
         18
         19
         20
        +\ no line end
        ");
    }

    #[test]
    fn a_text_that_comes_or_goes_is_one_hunk() {
        assert_eq!(unified("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified("f", "a\n", ""), "--- f\n+++ f\n@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(unified("f", "a\n", "a\n"), "");
    }
}
