package doctor

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const clockSources = "/sys/devices/system/clocksource/clocksource0/"

// clock looks for what the library asks for (c/clock.c), and for what
// clock_gettime costs.
func (m Machine) clock() []Finding {
	f := Finding{Status: OK, Subject: "clock", Why: "Each call that is timed reads the clock twice: the time-stamp counter of the processor, or the clock of the kernel."}
	current := m.read(clockSources + "current_clocksource")
	flags := " " + m.read("/proc/cpuinfo") + " "
	invariant := strings.Contains(flags, " constant_tsc ") && strings.Contains(flags, " nonstop_tsc ")
	trusted := strings.Contains(m.read(clockSources+"available_clocksource"), "tsc")
	switch {
	case invariant && trusted:
		f.What = "The time-stamp counter is invariant, and the kernel trusts it."
	case invariant:
		f.Status = Warn
		f.What = "The time-stamp counter is invariant, but the kernel does not trust it; its own clock is used."
		f.Fix = "See why it was given up (dmesg | grep -i tsc); a boot parameter tsc=reliable overrules the kernel, if the machine is sound."
	default:
		f.What = fmt.Sprintf("The clock of the kernel (%s).", current)
	}
	findings := []Finding{f}
	switch current {
	case "", "tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page":
		return findings
	}
	return append(findings, Finding{Status: Warn, Subject: "clock source",
		What: fmt.Sprintf("The kernel reads its clock from %s.", current),
		Why:  "Reading it takes a system call or an access to slow hardware, about a microsecond, many times in each run.",
		Fix:  "If " + clockSources + "available_clocksource lists tsc: echo tsc > " + clockSources + "current_clocksource"})
}

// affinity returns how many cores this process may use.
func affinity() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0
	}
	return set.Count()
}

func (m Machine) cores() []Finding {
	online, usable := countCores(m.read("/sys/devices/system/cpu/online")), m.affinity()
	f := Finding{Status: OK, Subject: "cores", Why: "A rank that does not get a core of its own looks late, and the ranks that wait for it pay.",
		What: fmt.Sprintf("%d, all usable.", usable)}
	if usable < online {
		f.Status = Warn
		f.What = fmt.Sprintf("%d of %d may be used from here.", usable, online)
		f.Fix = "taskset -p shows the mask, which a batch system, a container or a taskset before has set; ask for more cores there."
	}
	findings := []Finding{f}
	if quota := m.cpuQuota(); quota < float64(usable) {
		findings = append(findings, Finding{Status: Warn, Subject: "CPU quota",
			What: fmt.Sprintf("The control group grants %.2g cores' time, and %d cores may be used.", quota, usable),
			Why:  "When the quota is used up, all ranks are stopped until the next period: they look late at random.",
			Fix:  "Raise the quota (docker run --cpus, CPUQuota= of systemd), or start no more ranks than it covers."})
	}
	return findings
}

// countCores reads the kernel's way of listing cores: "0-3,8".
func countCores(list string) int {
	count := 0
	for _, part := range strings.Split(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		a, errA := strconv.Atoi(low)
		b, errB := strconv.Atoi(high)
		switch {
		case isRange && errA == nil && errB == nil:
			count += b - a + 1
		case errA == nil:
			count++
		}
	}
	return count
}

// cpuQuota returns how many cores' time the control groups around this process
// grant; +Inf if they set no limit.
func (m Machine) cpuQuota() float64 {
	quota := math.Inf(1)
	for _, line := range strings.Split(m.read("/proc/self/cgroup"), "\n") {
		parts := strings.SplitN(line, ":", 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		second := strings.Contains(","+parts[1]+",", ",cpu,")
		for group := path.Clean("/" + parts[2]); parts[1] == "" || second; group = path.Dir(group) {
			if second {
				base := "/sys/fs/cgroup/cpu" + group
				quota = min(quota, share(m.read(base+"/cpu.cfs_quota_us")+" "+m.read(base+"/cpu.cfs_period_us")))
			} else {
				quota = min(quota, share(m.read("/sys/fs/cgroup"+group+"/cpu.max")))
			}
			if group == "/" {
				break
			}
		}
	}
	return quota
}

// share reads "quota period"; no limit is "max" or -1.
func share(text string) float64 {
	words := strings.Fields(text)
	if len(words) != 2 {
		return math.Inf(1)
	}
	quota, errQuota := strconv.ParseFloat(words[0], 64)
	period, errPeriod := strconv.ParseFloat(words[1], 64)
	if errQuota != nil || errPeriod != nil || quota <= 0 || period <= 0 {
		return math.Inf(1)
	}
	return quota / period
}

// oversubscription says what to do with more ranks than cores.
func (m Machine) oversubscription() []Finding {
	f := Finding{Status: OK, Subject: "more ranks", Why: "A rank that waits spins, and takes the core from one that has work, unless Open MPI is told to give way.",
		What: fmt.Sprintf("Up to %d ranks on this host have a core each; for more, mpirun --oversubscribe.", m.affinity())}
	if m.variable("OMPI_MCA_mpi_yield_when_idle") == "0" {
		f.Status = Warn
		f.What = "OMPI_MCA_mpi_yield_when_idle is 0: with more ranks than cores, those that wait keep others from working."
		f.Fix = "unset OMPI_MCA_mpi_yield_when_idle"
	}
	return []Finding{f}
}
