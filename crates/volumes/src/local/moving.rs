//! A volume on its way to another node. What it holds is copied over the control plane, piece by piece; each piece is compared by its
//! hash before the next one begins, and where the copy ended is written down.
//!
//! ```text
//! volumes/HANDLE/moving.json           the id of its last move; where it goes, if it does: nobody mounts or grows it then
//! volumes/HANDLE.arriving/volume.json  on the other node, until all is there: the volume's record,
//! volumes/HANDLE.arriving/moving.json  the id of the move,
//! volumes/HANDLE.arriving/disk.img     its data,
//! volumes/HANDLE.arriving/arrived      and up to where that is as it was
//! ```
//!
//! A message may come late, when its move has ended and another has begun. So each says of which move it is: one of an earlier move
//! changes nothing, and what an earlier move has left is neither gone on with nor taken for the volume.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{Context, SHA256};
use corten_machine::write_whole;
use rustix::{
    fs::{SeekFrom, seek},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{
    store::{ARRIVING, DISK, MAKING, Store, make_folder, remove, remove_deleting, sync, write},
    volume::{Volume, VolumeRecord},
};
use crate::{
    Code, Fault,
    channel::{Piece, VolumeMove},
    with_faults_named,
};

const MOVING: &str = "moving.json";
const ARRIVED: &str = "arrived";
/// As a disk has it: of zeros nothing is sent, and nothing is hashed.
const BLOCK: usize = 4096;
/// So much is sent at once.
const PIECE_BYTES: usize = 2 << 20;

/// The last move that had to do with a volume here.
#[derive(Serialize, Deserialize)]
struct LastMove {
    id: String,
    /// `None`: the volume came with it, or it was called off.
    to: Option<String>,
}

impl LastMove {
    fn read(folder: &Path) -> Result<Option<Self>, Fault> {
        let text = match fs::read(folder.join(MOVING)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => with_faults_named(other, "read where the volume goes")?,
        };
        serde_json::from_slice(&text).map(Some).map_err(Fault::internal)
    }

    fn write(&self, folder: &Path) -> Result<(), Fault> {
        let text = serde_json::to_vec(self).map_err(Fault::internal)?;
        with_faults_named(write_whole(&folder.join(MOVING), 0o600, &text), "write where the volume goes")
    }

    fn is_of(last: Option<&Self>, of: &VolumeMove) -> bool {
        last.is_some_and(|it| it.id == of.id)
    }

    /// # Errors
    /// `FailedPrecondition`: a later move has had to do with what is here.
    fn is_not_after(last: Option<&Self>, of: &VolumeMove) -> Result<(), Fault> {
        let number = number_of(&of.id)?;
        match last.map(|it| number_of(&it.id)).transpose()? {
            Some(last) if last > number => {
                let why = format!("volume {} has been moved since move {} began", of.handle, of.id);
                Err(Fault::new(Code::FailedPrecondition, why))
            }
            _ => Ok(()),
        }
    }
}

/// Of two moves of a volume the later one has the larger number.
fn number_of(id: &str) -> Result<u64, Fault> {
    let number = id.split_once('-').and_then(|it| it.0.parse().ok());
    number.ok_or_else(|| Fault::new(Code::InvalidArgument, format!("{id:?} is not the id of a move")))
}

impl Store {
    /// # Errors
    /// `FailedPrecondition`: it is being moved.
    pub(super) fn stays(&self, handle: &str) -> Result<(), Fault> {
        match LastMove::read(&self.of(handle)?)?.and_then(|it| it.to) {
            Some(to) => {
                let why = format!("volume {handle} is being moved to node {to}");
                Err(Fault::new(Code::FailedPrecondition, why))
            }
            None => Ok(()),
        }
    }

    /// From now on nobody mounts it here. Answers what it is.
    pub(super) fn leave(&self, of: &VolumeMove, to: &str) -> Result<Volume, Fault> {
        let (handle, folder) = (of.handle.as_str(), self.of(&of.handle)?);
        let _hold = self.hold(handle)?;
        let volume = self.get(handle)?;
        if volume.form.is_folder() {
            let why =
                format!("volume {handle} is a folder (parameter limit), and only volumes that are files are moved");
            return Err(Fault::new(Code::InvalidArgument, why));
        }
        let last = LastMove::read(&folder)?;
        LastMove::is_not_after(last.as_ref(), of)?;
        if last.is_some_and(|it| it.id == of.id && it.to.is_none()) {
            return Err(Fault::new(Code::FailedPrecondition, format!("move {} was called off", of.id)));
        }
        self.is_not_in_use(handle)?;
        LastMove { id: of.id.clone(), to: Some(to.to_owned()) }.write(&folder)?;
        Ok(volume)
    }

    /// It is not moved after all.
    pub(super) fn stay(&self, of: &VolumeMove) -> Result<(), Fault> {
        let folder = self.of(&of.handle)?;
        let _hold = self.hold(&of.handle)?;
        match self.get(&of.handle) {
            // Nothing is left that could stay.
            Err(fault) if fault.code == Code::NotFound => return Ok(()),
            other => other?,
        };
        LastMove::is_not_after(LastMove::read(&folder)?.as_ref(), of)?;
        LastMove { id: of.id.clone(), to: None }.write(&folder)
    }

    /// It has gone with this move. What is here for another reason is not touched.
    pub(super) fn remove_left(&self, of: &VolumeMove) -> Result<(), Fault> {
        let folder = self.of(&of.handle)?;
        let _hold = self.hold(&of.handle)?;
        let last = LastMove::read(&folder)?;
        match last.filter(|it| it.id == of.id && it.to.is_some()) {
            Some(_) => self.delete_held(&of.handle),
            // What was being removed when somebody was stopped.
            None => remove_deleting(&self.folder, &of.handle),
        }
    }

    /// What the volume that leaves has from `at` on, before `end`: the first that is no hole.
    pub(super) fn piece(&self, of: &VolumeMove, Piece { at, end }: Piece) -> Result<(u64, Vec<u8>), Fault> {
        let disk = self.leaving_disk(of)?;
        let read = || -> io::Result<(u64, Vec<u8>)> {
            let file = File::open(&disk)?;
            let Some(begin) = data_from(&file, at, end)? else { return Ok((end, Vec::new())) };
            let until = seek(&file, SeekFrom::Hole(begin))?.min(end);
            let size = usize::try_from(until - begin).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let mut piece = vec![0; size];
            file.read_exact_at(&mut piece, begin)?;
            Ok((begin, piece))
        };
        with_faults_named(read(), "read the volume")
    }

    /// What the volume that leaves holds in a range.
    pub(super) fn hash_leaving(&self, of: &VolumeMove, Piece { at, end }: Piece) -> Result<String, Fault> {
        with_faults_named(hash(&self.leaving_disk(of)?, at, end), "read the volume")
    }

    fn leaving_disk(&self, of: &VolumeMove) -> Result<PathBuf, Fault> {
        let last = LastMove::read(&self.of(&of.handle)?)?;
        if last.is_none_or(|it| it.id != of.id || it.to.is_none()) {
            let why = format!("volume {} is not being moved by move {}", of.handle, of.id);
            return Err(Fault::new(Code::FailedPrecondition, why));
        }
        self.whole_disk(&self.get(&of.handle)?)
    }

    /// Makes room for a volume that comes from another node, or finds what has come of it with this move. Answers up to where it is
    /// there, and whether it is a volume of this node already.
    pub(super) fn arrive(&self, of: &VolumeMove, record: &VolumeRecord) -> Result<(u64, bool), Fault> {
        let volume = Volume::read(&of.handle, record);
        let unknown = || Fault::new(Code::InvalidArgument, "this node does not know what the volume is made of");
        let volume = volume.filter(|it| !it.form.is_folder()).ok_or_else(unknown)?;
        let folder = self.arriving(&of.handle)?;
        let (_hold, _arriving) = (self.hold(&of.handle)?, self.under_way.hold_alone(&folder)?);
        if self.is_settled(of)? {
            return Ok((volume.bytes, true));
        }
        if folder.exists() {
            let last = LastMove::read(&folder)?;
            LastMove::is_not_after(last.as_ref(), of)?;
            let there = self.record_of(&folder, &of.handle)?;
            if LastMove::is_of(last.as_ref(), of) && (there.bytes, there.form) == (volume.bytes, volume.form) {
                return Ok((arrived(&folder)?.min(volume.bytes), false));
            }
            self.remove_whole(&folder, &self.folder, &format!("{}{ARRIVING}", of.handle))?;
        }
        // What was shared where it was is its own here.
        self.begin_arriving(of, &folder, Volume { shared: 0, project: None, ..volume })?;
        Ok((0, false))
    }

    /// Is it here, with this move? What an earlier one has left is removed; what is here for another reason is in the way.
    fn is_settled(&self, of: &VolumeMove) -> Result<bool, Fault> {
        match self.get(&of.handle) {
            Err(fault) if fault.code == Code::NotFound => return Ok(false),
            other => other?,
        };
        let last = LastMove::read(&self.of(&of.handle)?)?;
        LastMove::is_not_after(last.as_ref(), of)?;
        match last {
            Some(it) if it.id == of.id && it.to.is_none() => Ok(true),
            Some(it) if it.id != of.id && it.to.is_some() => {
                self.delete_held(&of.handle)?;
                Ok(false)
            }
            _ => {
                let why = format!(
                    "this node has another volume {}, which did not leave it: where that is not wanted, remove {} there",
                    of.handle,
                    self.of(&of.handle)?.display()
                );
                Err(Fault::new(Code::AlreadyExists, why))
            }
        }
    }

    fn begin_arriving(&self, of: &VolumeMove, folder: &Path, volume: Volume) -> Result<(), Fault> {
        let _turn = self.turn.lock();
        self.has_room(volume.bytes)?;
        let work = self.folder.join(format!("{}{MAKING}", of.handle));
        remove(&work)?;
        make_folder(&work)?;
        let make = || {
            let disk = File::options().write(true).create_new(true).mode(0o600).open(work.join(DISK))?;
            disk.set_len(volume.bytes)?;
            disk.sync_all()
        };
        with_faults_named(make(), "make the volume's file")?;
        write(&work, &volume)?;
        LastMove { id: of.id.clone(), to: None }.write(&work)?;
        with_faults_named(fs::rename(&work, folder).and_then(|()| sync(&self.folder)), "make the volume")?;
        self.promises.has(&Volume { handle: format!("{}{ARRIVING}", of.handle), ..volume });
        Ok(())
    }

    /// What comes with this move.
    fn coming(&self, of: &VolumeMove, folder: &Path) -> Result<Volume, Fault> {
        let volume = self.record_of(folder, &of.handle)?;
        if LastMove::is_of(LastMove::read(folder)?.as_ref(), of) {
            return Ok(volume);
        }
        let why = format!("volume {} does not come with move {}", of.handle, of.id);
        Err(Fault::new(Code::FailedPrecondition, why))
    }

    /// A piece of it has come.
    pub(super) fn take_piece(&self, of: &VolumeMove, at: u64, data: &[u8]) -> Result<(), Fault> {
        let folder = self.arriving(&of.handle)?;
        let _hold = self.under_way.hold_to_read(&folder)?;
        let volume = self.coming(of, &folder)?;
        let end = at.checked_add(data.len() as u64).filter(|it| *it <= volume.bytes);
        if end.is_none() {
            return Err(Fault::new(Code::OutOfRange, "the piece ends after the volume"));
        }
        let file = File::options().write(true).open(folder.join(DISK));
        with_faults_named(file.and_then(|it| it.write_all_at(data, at)), "write the volume")
    }

    /// All up to `end` has come, if what is there from `at` on has this hash.
    pub(super) fn check_range(&self, of: &VolumeMove, piece: Piece, hash_there: &str) -> Result<(), Fault> {
        let folder = self.arriving(&of.handle)?;
        let _hold = self.under_way.hold_alone(&folder)?;
        self.coming(of, &folder)?;
        let disk = folder.join(DISK);
        let synced = File::options().write(true).open(&disk).and_then(|it| it.sync_all());
        with_faults_named(synced, "write the volume")?;
        let here = with_faults_named(hash(&disk, piece.at, piece.end), "read the volume")?;
        if here != hash_there {
            // What had come before has no place in what comes next.
            let emptied = emptied(&disk, piece.at, piece.end);
            with_faults_named(emptied, "write the volume")?;
            let why = format!("bytes {} to {} came with hash {here}, and have {hash_there}", piece.at, piece.end);
            return Err(Fault::new(Code::Aborted, why));
        }
        let text = piece.end.to_string();
        with_faults_named(
            write_whole(&folder.join(ARRIVED), 0o600, text.as_bytes()),
            "write how far the volume is here",
        )
    }

    /// It is a volume of this node.
    pub(super) fn settle(&self, of: &VolumeMove) -> Result<(), Fault> {
        let (folder, place) = (self.arriving(&of.handle)?, self.of(&of.handle)?);
        let (_hold, _arriving) = (self.hold(&of.handle)?, self.under_way.hold_alone(&folder)?);
        let _turn = self.turn.lock();
        if self.is_settled(of)? {
            return Ok(());
        }
        let volume = self.coming(of, &folder)?;
        let here = arrived(&folder)?;
        if here != volume.bytes {
            let why = format!("{here} of {} bytes of volume {} are here", volume.bytes, of.handle);
            return Err(Fault::new(Code::FailedPrecondition, why));
        }
        let settled = fs::remove_file(folder.join(ARRIVED))
            .and_then(|()| fs::rename(&folder, &place))
            .and_then(|()| sync(&self.folder));
        with_faults_named(settled, "make the volume")?;
        self.promises.has_no(&format!("{}{ARRIVING}", of.handle));
        self.promises.has(&volume);
        Ok(())
    }

    /// It does not come after all. It may have been whole here; what has not come with this move is not touched.
    pub(super) fn give_up(&self, of: &VolumeMove) -> Result<(), Fault> {
        let folder = self.arriving(&of.handle)?;
        let (_hold, _arriving) = (self.hold(&of.handle)?, self.under_way.hold_alone(&folder)?);
        let coming = format!("{}{ARRIVING}", of.handle);
        if LastMove::is_of(LastMove::read(&folder)?.as_ref(), of) {
            self.remove_whole(&folder, &self.folder, &coming)?;
            self.promises.has_no(&coming);
        }
        let last = LastMove::read(&self.of(&of.handle)?)?;
        match last.filter(|it| it.id == of.id && it.to.is_none()) {
            Some(_) => self.delete_held(&of.handle),
            None => remove_deleting(&self.folder, &of.handle),
        }
    }

    fn arriving(&self, handle: &str) -> Result<PathBuf, Fault> {
        // The name is one of a volume.
        self.of(handle)?;
        Ok(self.folder.join(format!("{handle}{ARRIVING}")))
    }
}

/// Up to where what has come is as it was.
fn arrived(folder: &Path) -> Result<u64, Fault> {
    match fs::read_to_string(folder.join(ARRIVED)) {
        Ok(text) => text.parse().map_err(Fault::internal),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => with_faults_named(Err(error), "read how far the volume is here"),
    }
}

/// Where there is data next; `None`: there is a hole up to `end`.
fn data_from(file: &File, at: u64, end: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(begin) => Ok((begin < end).then_some(begin)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The hash of what a range holds that is not zero, with where it is: the same on a disk with holes and on one without.
fn hash(disk: &Path, at: u64, end: u64) -> io::Result<String> {
    let file = File::open(disk)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; PIECE_BYTES];
    let mut next = at;
    while let Some(begin) = data_from(&file, next, end)? {
        // Blocks begin where they do whatever the extents are.
        let begin = begin - begin % BLOCK as u64;
        let begin = begin.max(at);
        let size = usize::try_from(end - begin).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        file.read_exact_at(&mut buffer[..size], begin)?;
        let mut place = begin;
        for block in buffer[..size].chunks(BLOCK) {
            if block.iter().any(|it| *it != 0) {
                context.update(&place.to_le_bytes());
                context.update(block);
            }
            place += block.len() as u64;
        }
        next = place;
    }
    Ok(context.finish().as_ref().iter().map(|it| format!("{it:02x}")).collect())
}

fn emptied(disk: &Path, at: u64, end: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let file = File::options().write(true).open(disk)?;
    match fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, end - at) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP) => {
            let zeros = vec![0; PIECE_BYTES];
            let mut next = at;
            while next < end {
                let size = usize::try_from(end - next).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
                file.write_all_at(&zeros[..size], next)?;
                next += size as u64;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
