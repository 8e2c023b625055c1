//! Which programs there are, at which tracepoints, and which of them some devices need.

use crate::bpf::device::BlockDevice;

/// A program, its tracepoint, and what it is there for.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) program: &'static str,
    pub(crate) tracepoint: &'static str,
    serves: Serves,
}

/// What a program is needed for. One that is not needed is not attached, since each event costs and so does attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    /// To follow children.
    Family,
    /// Every device.
    All,
    /// Devices that take bios.
    Bios,
    /// Devices that take requests.
    Requests,
}

/// Whether a program only takes times, so that counting goes on without it.
pub(crate) fn is_for_times(event: &Event) -> bool {
    matches!(event.program, "bio_complete" | "complete")
}

const fn event(program: &'static str, tracepoint: &'static str, serves: Serves) -> Event {
    Event { program, tracepoint, serves }
}

/// All programs, in the order in which they are attached. Those that follow children come first, so that no I/O is seen of a child
/// that is not followed.
const EVENTS: &[Event] = &[
    event("fork", "sched_process_fork", Serves::Family),
    event("forget", "sched_process_free", Serves::Family),
    event("bio_queue", "block_bio_queue", Serves::All),
    event("bio_complete", "block_bio_complete", Serves::Bios),
    event("back_merge", "block_bio_backmerge", Serves::Requests),
    event("front_merge", "block_bio_frontmerge", Serves::Requests),
    event("split", "block_split", Serves::All),
    event("request_merge", "block_rq_merge", Serves::Requests),
    event("requeue", "block_rq_requeue", Serves::Requests),
    event("complete", "block_rq_complete", Serves::Requests),
    // The last one: what is issued from now on is seen to its end.
    event("issue", "block_rq_issue", Serves::Requests),
];
/// Whose bios are distinguished from those of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Those of this process.
    Alone,
    /// And those of what it starts from now on, and of what that starts.
    WithChildren,
}

/// The programs that are needed for these devices; all of them for none, which is how it is tried whether they can be had.
pub(crate) fn events(family: Family, devices: &[BlockDevice]) -> Vec<&'static Event> {
    let takes_bios = |device: &BlockDevice| device.queues == 0;
    let is_needed = |event: &&Event| match event.serves {
        Serves::Family => family == Family::WithChildren,
        Serves::All => true,
        Serves::Bios => devices.is_empty() || devices.iter().any(takes_bios),
        Serves::Requests => devices.is_empty() || !devices.iter().all(takes_bios),
    };
    EVENTS.iter().filter(is_needed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_sys::device_number::DeviceNumber;

    #[test]
    fn only_what_devices_need_is_attached() {
        let device = |queues| BlockDevice { number: DeviceNumber { major: 1, minor: 1 }, queues, tags: 1 };
        let names = |family, devices: &[BlockDevice]| -> Vec<&str> {
            events(family, devices).into_iter().map(|event| event.program).collect()
        };
        assert_eq!(names(Family::Alone, &[device(0)]), ["bio_queue", "bio_complete", "split"]);
        let requests = names(Family::Alone, &[device(2)]);
        assert!(requests.len() == 8 && !requests.contains(&"bio_complete"), "{requests:?}");
        assert_eq!((requests[0], requests[7]), ("bio_queue", "issue"));
        assert_eq!(names(Family::Alone, &[device(0), device(1)]).len(), 9);
        assert_eq!(names(Family::WithChildren, &[device(0)])[..2], ["fork", "forget"]);
        assert_eq!(names(Family::WithChildren, &[]).len(), EVENTS.len());
    }
}
