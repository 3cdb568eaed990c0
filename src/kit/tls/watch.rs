//! Notices at once that something changed in the folders of the files. Says neither what nor whether it matters: that is
//! for the one who reads the files, and for the poll where no notice comes.

use std::{
    collections::BTreeSet,
    future::pending,
    io,
    os::fd::{AsFd, AsRawFd, RawFd},
    path::PathBuf,
};

use nix::{
    errno::Errno,
    sys::inotify::{AddWatchFlags, InitFlags, Inotify},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::Files;

/// Folders that are watched, or nothing where the system gives no watch.
#[derive(Debug)]
pub(super) struct Watch {
    folders: BTreeSet<PathBuf>,
    inotify: Option<AsyncFd<Handle>>,
}

impl Watch {
    /// Watches the folders of the files.
    pub(super) fn new(files: &Files) -> Self {
        let Files {
            certificate,
            key,
            ca,
            client_ca,
        } = files;
        let files = [
            Some(certificate),
            Some(key),
            ca.as_ref(),
            client_ca.as_ref(),
        ];
        let folders = files.into_iter().flatten().filter_map(|file| file.parent());
        let inotify = match start() {
            Ok(inotify) => Some(inotify),
            Err(error) => {
                tracing::warn!(%error, "Certificate files are polled only, the system gives no watch");
                None
            }
        };
        Self {
            folders: folders.map(PathBuf::from).collect(),
            inotify,
        }
    }

    /// Watches folders that have come since, or come again. Those that are watched already cost nothing.
    pub(super) fn refresh(&self) {
        let Some(inotify) = &self.inotify else { return };
        let changes = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_ONLYDIR;
        for folder in &self.folders {
            // A folder that is not there yet is looked for again with the next poll.
            let _ = inotify.get_ref().0.add_watch(folder, changes);
        }
    }

    /// Waits for a change; forever, where there is no watch.
    pub(super) async fn changed(&self) {
        let Some(inotify) = &self.inotify else {
            return pending().await;
        };
        let read = inotify.async_io(Interest::READABLE, |inotify| {
            match inotify.0.read_events() {
                Ok(events) => Ok(events.len()),
                Err(Errno::EAGAIN) => Err(io::ErrorKind::WouldBlock.into()),
                Err(error) => Err(error.into()),
            }
        });
        if let Err(error) = read.await {
            tracing::debug!(%error, "Changes of certificate files cannot be read");
            // A watch that fails once would fail at once again and again.
            pending().await
        }
    }
}

/// The watch of the system, in the form that the runtime waits on.
#[derive(Debug)]
struct Handle(Inotify);

impl AsRawFd for Handle {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for handles that may change their descriptor; ours owns one and keeps it"
)]
fn start() -> io::Result<AsyncFd<Handle>> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    AsyncFd::with_interest(Handle(inotify), Interest::READABLE)
}
