//! The name that a hypervisor gives to its guests through the processor. It knows no other way, and none but x86.

/// The signature of the hypervisor below this machine (CPUID leaf 0x4000_0000; Documentation/virt/kvm/x86/cpuid.rst): `KVMKVMKVM`,
/// `TCGTCGTCGTCG` where QEMU emulates the processor. `None` on bare metal, and on other processors.
#[cfg(target_arch = "x86_64")]
pub fn signature() -> Option<String> {
    use std::arch::x86_64::__cpuid;

    /// Where the hypervisor speaks, and where KVM does that shows itself as Hyper-V at first.
    const LEAVES: [u32; 2] = [0x4000_0100, 0x4000_0000];
    const IS_GUEST: u32 = 1 << 31;
    if __cpuid(1).ecx & IS_GUEST == 0 {
        return None;
    }
    let at = |leaf: u32| {
        let registers = __cpuid(leaf);
        let bytes = [registers.ebx, registers.ecx, registers.edx].map(u32::to_le_bytes).concat();
        String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned()
    };
    let [second, first] = LEAVES.map(at);
    let name = if second.starts_with("KVM") { second } else { first };
    (!name.is_empty()).then_some(name)
}

/// The signature of the hypervisor below this machine, which these processors do not say.
#[cfg(not(target_arch = "x86_64"))]
pub fn signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    /// The kernel shows the same bit as a flag.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn only_a_guest_has_one() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap();
        assert_eq!(super::signature().is_some(), flags.split(' ').any(|flag| flag == "hypervisor"));
    }
}
