//! The machine, as the Record describes it: kernel, processor, memory, and whether it is virtual. It measures
//! nothing; the caller passes the facts of the clock.

use rdsk_model::{ClockFacts, Host};
use rdsk_sys::files::{memory_bytes, read_word};
use std::path::Path;

/// What hypervisors call themselves to their guests, and the short name of each. QEMU without KVM emulates the processor.
const SIGNATURES: [(&str, &str); 7] = [
    ("KVMKVMKVM", "kvm"),
    ("TCGTCGTCGTCG", "qemu"),
    ("Microsoft Hv", "hyper-v"),
    ("VMwareVMware", "vmware"),
    ("XenVMMXenVMM", "xen"),
    ("VBoxVBoxVBox", "virtualbox"),
    ("prl hyperv", "parallels"),
];

/// Words in the DMI vendor and product of well-known hypervisors, and the short name of each.
const HYPERVISORS: [(&str, &str); 12] = [
    ("kvm", "kvm"),
    ("qemu", "qemu"),
    ("google compute engine", "kvm"),
    ("openstack", "kvm"),
    ("amazon ec2", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("microsoft corporation virtual machine", "hyper-v"),
    ("parallels", "parallels"),
    ("xen", "xen"),
    ("bochs", "bochs"),
];

/// Files that container runtimes put into the root directory, and the runtime.
const CONTAINER_FILES: [(&str, &str); 2] = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];

/// Words in the path of a control group that show a container.
const CONTAINER_GROUPS: [&str; 5] = ["docker", "kubepods", "libpod", "containerd", "lxc"];

/// The machine that `proc` and `sys` (`/proc` and `/sys`) describe. What cannot be read is `None`; without a
/// kernel release in `proc`, uname(2) gives it.
pub fn host(proc: &Path, sys: &Path, clock: ClockFacts) -> Host {
    described(proc, sys, rdsk_sys::hypervisor::signature().as_deref(), clock)
}

fn described(proc: &Path, sys: &Path, signature: Option<&str>, clock: ClockFacts) -> Host {
    let cpuinfo = std::fs::read_to_string(proc.join("cpuinfo")).unwrap_or_default();
    let meminfo = std::fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
    let kernel = read_word(&proc.join("sys/kernel/osrelease"))
        .unwrap_or_else(|| rustix::system::uname().release().to_string_lossy().into_owned());
    let hostname = read_word(&proc.join("sys/kernel/hostname")).filter(|name| name != "(none)");
    Host {
        hostname,
        kernel,
        cpu_model: cpu_model(&cpuinfo),
        cpu_count: u32::try_from(rdsk_sys::affinity::allowed_cpus().len()).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(&meminfo, "MemTotal"),
        virtualization: virtualization(proc, sys, signature, &cpuinfo),
        page_bytes: Some(rdsk_sys::cache::page_size()),
        clock,
    }
}

/// What the kernel can give to programs without swapping, by its own estimate (`MemAvailable`); `None` where it does not say.
pub fn available_memory_bytes(proc: &Path) -> Option<u64> {
    memory_bytes(&std::fs::read_to_string(proc.join("meminfo")).ok()?, "MemAvailable")
}

/// The processor as x86 (`model name`), POWER and s390 (`cpu`, `processor`) and some ARM kernels (`Hardware`) name it.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "cpu model", "cpu", "Hardware"].into_iter().find_map(|wanted| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            let value = value.trim();
            (key.trim() == wanted && !value.is_empty()).then(|| value.to_owned())
        })
    })
}

/// `kvm`, `vmware`, …, or `vm` if the hypervisor hides its name; a container by its runtime; both as `docker on kvm`.
fn virtualization(proc: &Path, sys: &Path, signature: Option<&str>, cpuinfo: &str) -> Option<String> {
    let container = container(proc).map(str::to_owned);
    let layers: Vec<String> = container.into_iter().chain(hypervisor(sys, signature, cpuinfo)).collect();
    (!layers.is_empty()).then(|| layers.join(" on "))
}

fn hypervisor(sys: &Path, signature: Option<&str>, cpuinfo: &str) -> Option<String> {
    if let Some(name) = read_word(&sys.join("hypervisor/type")) {
        return Some(name);
    }
    let flagged = cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(key, value)| key.trim() == "flags" && value.split(' ').any(|flag| flag == "hypervisor"));
    // What it says itself; QEMU has the same DMI whether KVM runs the guest or not.
    let by_name = signature.and_then(|own| SIGNATURES.iter().find(|(vendor, _)| *vendor == own));
    if let Some((_, name)) = by_name.filter(|_| flagged) {
        return Some((*name).to_owned());
    }
    let dmi = |name: &str| read_word(&sys.join("class/dmi/id").join(name)).unwrap_or_default();
    let product = format!("{} {}", dmi("sys_vendor"), dmi("product_name")).to_lowercase();
    let vendor = HYPERVISORS.iter().find(|(word, _)| product.contains(word)).map(|(_, name)| *name);
    // Bare-metal cloud instances show the vendor too, but their processors have no hypervisor flag. Processors other
    // than x86 have no flags at all, so the vendor must suffice.
    let x86 = cpuinfo.lines().any(|line| line.starts_with("flags"));
    match vendor {
        // As Amazon names those of ARM that are none.
        Some(name) if flagged || (!x86 && !product.contains(".metal")) => Some(name.to_owned()),
        _ => flagged.then(|| "vm".to_owned()),
    }
}

fn container(proc: &Path) -> Option<&'static str> {
    let root = proc.join("self/root");
    if let Some((_, runtime)) = CONTAINER_FILES.iter().find(|(file, _)| root.join(file).exists()) {
        return Some(runtime);
    }
    // The first process carries `container=…` under systemd-nspawn, LXC and others; only root may read it.
    let marked = std::fs::read(proc.join("1/environ")).is_ok_and(|environment| {
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"container="))
    });
    let groups = std::fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    (marked || CONTAINER_GROUPS.iter().any(|word| groups.contains(word))).then_some("container")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::write;

    fn clock() -> ClockFacts {
        ClockFacts { source: "tsc".to_owned(), resolution_ns: 1, read_cost_ns: 20 }
    }

    const X86_GUEST: &str =
        "processor\t: 0\nmodel name\t: Some CPU @ 2.60GHz\nflags\t\t: fpu hypervisor sse\n";

    #[test]
    fn a_guest_with_a_name_and_one_without() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        write(&proc.join("cpuinfo"), X86_GUEST);
        write(&proc.join("meminfo"), "MemTotal: 1024 kB\n");
        write(&proc.join("sys/kernel/osrelease"), "6.1.0-13-amd64\n");
        write(&proc.join("sys/kernel/hostname"), "(none)\n");
        assert_eq!(described(&proc, &sys, None, clock()).hostname, None, "none was given");
        write(&proc.join("sys/kernel/hostname"), "web17\n");
        assert_eq!(described(&proc, &sys, None, clock()).hostname.as_deref(), Some("web17"));
        let nameless = described(&proc, &sys, None, clock());
        assert_eq!(nameless.kernel, "6.1.0-13-amd64");
        assert_eq!(nameless.cpu_model.as_deref(), Some("Some CPU @ 2.60GHz"));
        assert_eq!(nameless.memory_bytes, Some(1 << 20));
        assert_eq!(nameless.virtualization.as_deref(), Some("vm"));
        assert!(nameless.cpu_count > 0);
        assert_eq!(nameless.clock, clock());
        write(&sys.join("class/dmi/id/sys_vendor"), "QEMU\n");
        write(&sys.join("class/dmi/id/product_name"), "Standard PC (Q35 + ICH9, 2009)\n");
        assert_eq!(described(&proc, &sys, None, clock()).virtualization.as_deref(), Some("qemu"));
        let named = |signature| described(&proc, &sys, Some(signature), clock()).virtualization;
        assert_eq!(named("KVMKVMKVM").as_deref(), Some("kvm"));
        assert_eq!(named("TCGTCGTCGTCG").as_deref(), Some("qemu"), "without KVM");
        write(&sys.join("class/dmi/id/sys_vendor"), "Google Compute Engine\n");
        write(&proc.join("self/root/.dockerenv"), "");
        assert_eq!(described(&proc, &sys, None, clock()).virtualization.as_deref(), Some("docker on kvm"));
    }

    #[test]
    fn bare_metal_of_a_cloud_is_no_guest() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        write(&proc.join("cpuinfo"), &X86_GUEST.replace("hypervisor ", ""));
        write(&sys.join("class/dmi/id/sys_vendor"), "Amazon EC2\n");
        assert_eq!(described(&proc, &sys, None, clock()).virtualization, None);
        write(&sys.join("hypervisor/type"), "xen\n");
        assert_eq!(described(&proc, &sys, None, clock()).virtualization.as_deref(), Some("xen"));
        // Processors of ARM have no flags, so that the product must say.
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        write(&proc.join("cpuinfo"), "processor\t: 0\nFeatures\t: fp asimd\n");
        write(&sys.join("class/dmi/id/sys_vendor"), "Amazon EC2\n");
        for (product, expected) in [("m8g.large", Some("kvm")), ("m7g.metal", None), ("m8g.metal-24xl", None)]
        {
            write(&sys.join("class/dmi/id/product_name"), product);
            assert_eq!(
                described(&proc, &sys, None, clock()).virtualization.as_deref(),
                expected,
                "{product}"
            );
        }
    }

    #[test]
    fn containers_show_in_the_groups_or_in_the_first_process() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        assert_eq!(described(&proc, &sys, None, clock()).virtualization, None);
        write(&proc.join("1/environ"), "PATH=/bin\0container=lxc\0");
        assert_eq!(described(&proc, &sys, None, clock()).virtualization.as_deref(), Some("container"));
        write(&proc.join("1/environ"), "no_container=1\0");
        assert_eq!(described(&proc, &sys, None, clock()).virtualization, None);
        write(&proc.join("self/cgroup"), "0::/kubepods/burstable/pod7\n");
        assert_eq!(described(&proc, &sys, None, clock()).virtualization.as_deref(), Some("container"));
    }

    #[test]
    fn kilobytes_are_1024_bytes() {
        let text = "MemTotal:        4030276 kB\nMemFree: 1 kB\nSwapCached:           7 kB\nCached: 20 kB\n\
                    Dirty:                40 kB\nWriteback:             0 kB\nWritebackTmp:          9 kB\n";
        let fields = ["MemTotal", "MemAvailable", "Cached", "Dirty", "Writeback"];
        assert_eq!(
            fields.map(|name| memory_bytes(text, name)),
            [Some(4_030_276 * 1024), None, Some(20_480), Some(40_960), Some(0)]
        );
    }

    #[test]
    fn this_machine_has_memory() {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total_bytes = memory_bytes(&meminfo, "MemTotal");
        assert!(total_bytes.unwrap() > 16 << 20);
        assert!(memory_bytes(&meminfo, "MemAvailable") < total_bytes);
        let error = crate::read_text(Path::new("/nonexistent/meminfo")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/meminfo"));
    }

    #[test]
    fn this_machine() {
        let host = host(Path::new("/proc"), Path::new("/sys"), clock());
        assert!(host.kernel.starts_with(|c: char| c.is_ascii_digit()));
        assert!(host.memory_bytes.is_some() && host.cpu_count > 0);
        assert_eq!(
            cpu_model("cpu\t\t: POWER9, altivec supported\n").as_deref(),
            Some("POWER9, altivec supported")
        );
        assert_eq!(cpu_model(""), None);
    }
}
