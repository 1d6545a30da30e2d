//! Which file system the root is on: whether its locks can be trusted, and whether it can be written.
//!
//! Invariant: a file system is `Local` only if it is on the list. An unknown one may be written, but nobody's
//! death is ever proven on it.

use std::os::fd::AsFd;

use rustix::fs::{StatVfsMountFlags, fstatvfs};

/// How far away the root's file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locality {
    /// On this machine: every process that can write the root is one of this kernel's.
    Local,
    /// Shared with other machines, or served by a process.
    Network,
    /// Neither list knows it.
    Unknown,
}

/// A file system, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filesystem {
    /// How far away it is.
    pub(super) locality: Locality,
    /// What it is called, for people.
    pub(super) kind: &'static str,
    /// Whether it is mounted for reading only.
    pub(super) read_only: bool,
}

/// Looks at the file system an open file is on.
pub(super) fn of(file: impl AsFd) -> rustix::io::Result<Filesystem> {
    let (locality, kind) = locality(file.as_fd())?;
    let read_only = fstatvfs(file.as_fd())?.f_flag.contains(StatVfsMountFlags::RDONLY);
    Ok(Filesystem { locality, kind, read_only })
}

#[cfg(target_os = "linux")]
fn locality(file: impl AsFd) -> rustix::io::Result<(Locality, &'static str)> {
    #[allow(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "the magic is 32 bits wide, and its type and sign differ between architectures"
    )]
    let magic = rustix::fs::fstatfs(file)?.f_type as u32;
    Ok(classify(magic))
}

#[cfg(not(target_os = "linux"))]
fn locality(_file: impl AsFd) -> rustix::io::Result<(Locality, &'static str)> {
    Ok((Locality::Unknown, "unknown"))
}

#[cfg(target_os = "linux")]
fn classify(magic: u32) -> (Locality, &'static str) {
    let find = |list: &[(u32, &'static str)]| list.iter().find(|entry| entry.0 == magic).map(|entry| entry.1);
    if let Some(kind) = find(LOCAL) {
        return (Locality::Local, kind);
    }
    find(NETWORK).map_or((Locality::Unknown, "unknown"), |kind| (Locality::Network, kind))
}

#[cfg(target_os = "linux")]
const LOCAL: &[(u32, &str)] = &[
    (0x0000_EF53, "ext"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0xF2F5_2010, "f2fs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58F6, "ramfs"),
    (0x794C_7630, "overlay"),
    (0x2FC1_2FC1, "zfs"),
    (0xCA45_1A4E, "bcachefs"),
    (0x5265_4973, "reiserfs"),
    (0x3153_464A, "jfs"),
    (0x0000_3434, "nilfs"),
    (0x0000_4D44, "vfat"),
    (0x2011_BAB0, "exfat"),
    (0x7366_746E, "ntfs3"),
    (0x6175_6673, "aufs"),
    (0x0000_F15F, "ecryptfs"),
    (0x2405_1905, "ubifs"),
    (0x7371_7368, "squashfs"),
    (0xE0F5_E1E2, "erofs"),
    (0x0000_9660, "iso9660"),
];

#[cfg(target_os = "linux")]
const NETWORK: &[(u32, &str)] = &[
    (0x0000_6969, "NFS"),
    (0x0000_517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0000_564C, "NCP"),
    (0x7375_7245, "Coda"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x0102_1997, "9p"),
    // virtiofs shows the same magic as every other FUSE file system.
    (0x6573_5546, "FUSE"),
    (0x00C3_6400, "Ceph"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x786F_4256, "vboxsf"),
    (0xBACB_ACBC, "VMware shared folder"),
    (0x2003_0528, "OrangeFS"),
    (0x1983_0326, "BeeGFS"),
    (0xAAD7_AAEA, "PanFS"),
];

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn only_listed_file_systems_are_local() {
        assert_eq!(classify(0xEF53).0, Locality::Local);
        assert_eq!(classify(0x6573_5546), (Locality::Network, "FUSE"));
        assert_eq!(classify(0x9FA0).0, Locality::Unknown, "procfs is on neither list");
        for (magic, kind) in LOCAL {
            assert!(NETWORK.iter().all(|entry| entry.0 != *magic), "{kind} is on both lists");
        }
    }
}
