//! What terminals are called.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The name of the terminal with this number in the table, as ps(1) shows it: `pts/3`, `tty1`.
/// `None` for no terminal.
pub fn terminal_name(tty: u64) -> Option<String> {
    let tty = u32::try_from(tty).ok()?;
    // proc_pid_stat(5): the minor number is in bits 31 to 20 and 7 to 0.
    let (major, minor) = (tty >> 8 & 0xfff, tty & 0xff | tty >> 12 & 0xf_ff00);
    match (major, minor) {
        (0, 0) => None,
        (136..=143, minor) => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        (4, 0..=63) => Some(format!("tty{minor}")),
        (4, _) => Some(format!("ttyS{}", minor - 64)),
        (5, 1) => Some("console".to_owned()),
        _ => Some(format!("{major}:{minor}")),
    }
}

/// The name, as of [`terminal_name`], of the terminal that is called `name`: `pts/3`,
/// `/dev/pts/3`, or a link to it.
pub fn terminal_called(name: &Path) -> String {
    let path = Path::new("/dev").join(name);
    let device = fs::metadata(&path)
        .ok()
        .filter(|stat| stat.file_type().is_char_device())
        .map(|stat| stat.rdev());
    let number = device.map(|device| {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        u64::from((minor & 0xff) | major << 8 | (minor & 0xf_ff00) << 12)
    });
    number.and_then(terminal_name).unwrap_or_else(|| {
        let name = path.strip_prefix("/dev").unwrap_or(&path);
        name.to_string_lossy().into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_have_names() {
        let table = [
            (0, None),
            (34816, Some("pts/0")),
            (34819, Some("pts/3")),
            (1_083_392, Some("pts/256")),
            (1025, Some("tty1")),
            (1088, Some("ttyS0")),
            (1281, Some("console")),
        ];
        for (number, name) in table {
            assert_eq!(terminal_name(number).as_deref(), name, "{number}");
        }
        assert_eq!(terminal_called(Path::new("/dev/pts/9999")), "pts/9999");
        assert_eq!(terminal_called(Path::new("pts/9999")), "pts/9999");
    }
}
