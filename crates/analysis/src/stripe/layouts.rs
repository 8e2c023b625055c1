//! The layouts that arrays are known to have: which role reads a chunk, and which roles are written with it. The rules are
//! those of md's formats (`Documentation/admin-guide/md.rst`, `man 4 md`; dm-raid has the same); nothing is measured here.

/// How a level deals its parity round the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Parity moves down, data counts up from the first member.
    LeftAsymmetric,
    /// Parity moves up, data counts up from the first member.
    RightAsymmetric,
    /// Parity moves down, data continues after it: the default of md and LVM.
    LeftSymmetric,
    /// Parity moves up, data continues after it.
    RightSymmetric,
}

/// What one layout is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Striped, without parity or copies.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// All parity on one member.
    Raid4,
    /// One parity chunk per stripe, moving.
    Raid5,
    /// Two parity chunks per stripe.
    Raid6,
    /// Copies that are striped.
    Raid10,
}

/// Where a layout puts what is beside the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// One parity chunk; `None` if it never moves.
    Parity(Option<Rotation>),
    /// Two parity chunks that move together.
    Parities(Rotation),
    /// Two of DDF: the first stripe is a turn further, or the second chunk lies before the first.
    ParitiesOn(Ddf),
    /// One that moves and one that stays on the last member; `None` if neither moves.
    ParityAndFixed(Option<Rotation>),
    /// Copies next to each other.
    Near(u64),
    /// Copies on the following members, in another place of each.
    Following(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ddf {
    /// `ROTATING_N_RESTART`.
    Restart,
    /// `ROTATING_N_CONTINUE`.
    Continue,
}

/// One layout over a number of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) members: u64,
    beside: Beside,
}

/// The roles of one chunk: who is read for it, and all that are written with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Roles {
    pub(super) read: u64,
    written: [u64; 3],
    count: usize,
}

impl Roles {
    pub(super) fn written(&self) -> &[u64] {
        &self.written[..self.count]
    }
}

const ROTATIONS: [Rotation; 4] =
    [Rotation::LeftSymmetric, Rotation::LeftAsymmetric, Rotation::RightSymmetric, Rotation::RightAsymmetric];

/// All layouts over so many members, the usual ones first.
pub(super) fn all(members: u64) -> Vec<Known> {
    let mut beside = Vec::new();
    if members >= 2 {
        beside.push(Beside::Nothing);
    }
    if members >= 3 {
        beside.extend(ROTATIONS.map(|rotation| Beside::Parity(Some(rotation))));
        beside.push(Beside::Parity(None));
    }
    if members >= 4 {
        beside.extend(ROTATIONS.map(Beside::Parities));
        beside.extend([Ddf::Restart, Ddf::Continue].map(Beside::ParitiesOn));
        beside.extend(ROTATIONS.map(|rotation| Beside::ParityAndFixed(Some(rotation))));
        beside.push(Beside::ParityAndFixed(None));
    }
    for copies in 2..=3 {
        if members > copies {
            beside.push(Beside::Near(copies));
        }
        if members >= copies {
            beside.push(Beside::Following(copies));
        }
    }
    beside.into_iter().map(|beside| Known { members, beside }).collect()
}

impl Known {
    /// Chunks of a full stripe: members whose data lie side by side before the first one comes again.
    pub(super) fn data(&self) -> u64 {
        let n = self.members;
        match self.beside {
            Beside::Nothing | Beside::Following(_) => n,
            Beside::Parity(_) => n - 1,
            Beside::Parities(_) | Beside::ParitiesOn(_) | Beside::ParityAndFixed(_) => n - 2,
            // As md's own optimal I/O size: if the copies do not divide the members, a whole turn.
            Beside::Near(copies) if n.is_multiple_of(copies) => n / copies,
            Beside::Near(_) => n,
        }
    }

    pub(super) fn parities(&self) -> u64 {
        match self.beside {
            Beside::Parity(_) => 1,
            Beside::Parities(_) | Beside::ParitiesOn(_) | Beside::ParityAndFixed(_) => 2,
            Beside::Nothing | Beside::Near(_) | Beside::Following(_) => 0,
        }
    }

    /// How many members hold the same data.
    pub(super) fn copies(&self) -> u64 {
        match self.beside {
            Beside::Near(copies) | Beside::Following(copies) => copies,
            _ => 1,
        }
    }

    pub(super) fn level(&self) -> Level {
        match self.beside {
            Beside::Nothing => Level::Raid0,
            Beside::Parity(None) => Level::Raid4,
            Beside::Parity(Some(_)) => Level::Raid5,
            Beside::Parities(_) | Beside::ParitiesOn(_) | Beside::ParityAndFixed(_) => Level::Raid6,
            Beside::Near(_) | Beside::Following(_) => Level::Raid10,
        }
    }

    /// How the parity moves, if that has one of the four usual names.
    pub(super) fn rotation(&self) -> Option<Rotation> {
        match self.beside {
            Beside::Parity(rotation) => rotation,
            Beside::Parities(rotation) => Some(rotation),
            _ => None,
        }
    }

    /// Whether any of the copies may answer a read.
    pub(super) fn reads_anywhere(&self) -> bool {
        matches!(self.beside, Beside::Near(_) | Beside::Following(_))
    }

    /// Chunks after which the roles come again.
    pub(super) fn period(&self) -> u64 {
        match self.beside {
            Beside::Nothing | Beside::Near(_) | Beside::Following(_) => self.members,
            Beside::Parity(None) | Beside::ParityAndFixed(None) => self.data(),
            Beside::ParityAndFixed(Some(_)) => self.data() * (self.members - 1),
            _ => self.data() * self.members,
        }
    }

    /// The roles of a chunk, counted from the first of the array.
    pub(super) fn roles(&self, chunk: u64) -> Roles {
        let n = self.members;
        let data = self.data();
        let (stripe, place) = (chunk / data, chunk % data);
        match self.beside {
            Beside::Nothing => roles(&[chunk % n]),
            Beside::Parity(rotation) => {
                let (read, parity) = rotated(rotation, n, stripe, place);
                roles(&[read, parity])
            }
            Beside::ParityAndFixed(rotation) => {
                let (read, parity) = rotated(rotation, n - 1, stripe, place);
                roles(&[read, parity, n - 1])
            }
            Beside::Parities(rotation) => {
                let parity = rotation.parity(n, stripe);
                if rotation.is_symmetric() {
                    roles(&[(parity + 2 + place) % n, parity, (parity + 1) % n])
                } else {
                    beside_two(n, parity, place)
                }
            }
            Beside::ParitiesOn(Ddf::Restart) => beside_two(n, n - 1 - (stripe + 1) % n, place),
            Beside::ParitiesOn(Ddf::Continue) => {
                let parity = n - 1 - stripe % n;
                roles(&[(parity + 1 + place) % n, parity, (parity + n - 1) % n])
            }
            Beside::Near(copies) => copied(n, chunk % n * copies, copies),
            Beside::Following(copies) => copied(n, chunk, copies),
        }
    }
}

/// Two parity chunks in a row, data on the others in their order.
fn beside_two(n: u64, parity: u64, place: u64) -> Roles {
    let read = match parity {
        last if last == n - 1 => place + 1,
        parity if place >= parity => place + 2,
        _ => place,
    };
    roles(&[read, parity, (parity + 1) % n])
}

/// The reader and the parity of a level with one parity that moves, or stays on the last member.
fn rotated(rotation: Option<Rotation>, n: u64, stripe: u64, place: u64) -> (u64, u64) {
    let Some(rotation) = rotation else { return (place, n - 1) };
    let parity = rotation.parity(n, stripe);
    let after_parity = (parity + 1 + place) % n;
    (if rotation.is_symmetric() { after_parity } else { place + u64::from(place >= parity) }, parity)
}

fn copied(n: u64, first: u64, copies: u64) -> Roles {
    let mut all = [first % n, 0, 0];
    let copies = usize::try_from(copies).unwrap_or(1).min(all.len());
    for (copy, role) in (0..).zip(&mut all[..copies]) {
        *role = (first + copy) % n;
    }
    roles(&all[..copies])
}

fn roles(all: &[u64]) -> Roles {
    let mut written = [0; 3];
    written[..all.len()].copy_from_slice(all);
    Roles { read: all[0], written, count: all.len() }
}

impl Level {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Raid0 => "RAID 0",
            Level::Raid1 => "RAID 1",
            Level::Raid4 => "RAID 4",
            Level::Raid5 => "RAID 5",
            Level::Raid6 => "RAID 6",
            Level::Raid10 => "RAID 10",
        }
    }

    /// The level that md and device mapper spell like this.
    pub(super) fn spelled(word: &str) -> Option<Level> {
        match word {
            "raid0" | "striped" => Some(Level::Raid0),
            "raid1" | "mirror" => Some(Level::Raid1),
            "raid4" => Some(Level::Raid4),
            "raid5" => Some(Level::Raid5),
            "raid6" => Some(Level::Raid6),
            "raid10" => Some(Level::Raid10),
            _ => None,
        }
    }
}

impl Rotation {
    /// The member with the parity of a stripe, of `n` members.
    fn parity(self, n: u64, stripe: u64) -> u64 {
        match self {
            Rotation::LeftAsymmetric | Rotation::LeftSymmetric => n - 1 - stripe % n,
            Rotation::RightAsymmetric | Rotation::RightSymmetric => stripe % n,
        }
    }

    /// Whether data continues after the parity.
    fn is_symmetric(self) -> bool {
        matches!(self, Rotation::LeftSymmetric | Rotation::RightSymmetric)
    }

    /// As md writes it.
    pub fn name(self) -> &'static str {
        match self {
            Rotation::LeftAsymmetric => "left-asymmetric",
            Rotation::RightAsymmetric => "right-asymmetric",
            Rotation::LeftSymmetric => "left-symmetric",
            Rotation::RightSymmetric => "right-symmetric",
        }
    }

    /// The rotation that md numbers, and dm-raid spells, like this.
    pub(super) fn spelled(word: &str) -> Option<Rotation> {
        match word {
            "0" | "la" => Some(Rotation::LeftAsymmetric),
            "1" | "ra" => Some(Rotation::RightAsymmetric),
            "2" | "ls" => Some(Rotation::LeftSymmetric),
            "3" | "rs" => Some(Rotation::RightSymmetric),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stripe_of_every_layout_uses_each_member_at_most_once() {
        for members in 2..=7 {
            for known in all(members) {
                if known.copies() > 1 {
                    continue;
                }
                for stripe in 0..2 * members {
                    let chunks =
                        (stripe * known.data()..(stripe + 1) * known.data()).map(|at| known.roles(at));
                    let chunks: Vec<Roles> = chunks.collect();
                    let mut used: Vec<u64> = chunks.iter().map(|one| one.read).collect();
                    used.extend(&chunks[0].written()[1..]);
                    assert!(chunks.iter().all(|one| one.written()[1..] == chunks[0].written()[1..]));
                    used.sort_unstable();
                    assert_eq!(used, (0..members).collect::<Vec<_>>(), "{known:?} stripe {stripe}");
                }
            }
        }
    }

    #[test]
    fn roles_come_again_after_the_period_and_copies_lie_on_different_members() {
        for members in 2..=7 {
            for known in all(members) {
                for chunk in 0..known.period() {
                    let one = known.roles(chunk);
                    assert_eq!(one, known.roles(chunk + known.period()), "{known:?}");
                    let mut written = one.written().to_vec();
                    written.sort_unstable();
                    written.dedup();
                    assert_eq!(written.len(), one.written().len(), "{known:?}");
                }
            }
        }
    }

    #[test]
    fn the_usual_layouts_are_those_of_the_manual() {
        let reads = |beside: Beside, members: u64, count: u64| -> Vec<u64> {
            (0..count).map(|chunk| Known { members, beside }.roles(chunk).read).collect()
        };
        assert_eq!(reads(Beside::Parity(Some(Rotation::LeftSymmetric)), 4, 6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(reads(Beside::Parity(Some(Rotation::LeftAsymmetric)), 4, 6), [0, 1, 2, 0, 1, 3]);
        assert_eq!(reads(Beside::Parity(Some(Rotation::RightAsymmetric)), 3, 6), [1, 2, 0, 2, 0, 1]);
        assert_eq!(reads(Beside::Parities(Rotation::LeftSymmetric), 5, 6), [1, 2, 3, 0, 1, 2]);
        assert_eq!(reads(Beside::Near(2), 4, 4), [0, 2, 0, 2]);
        assert_eq!(Known { members: 3, beside: Beside::Near(2) }.roles(1).written(), [2, 0]);
    }
}
