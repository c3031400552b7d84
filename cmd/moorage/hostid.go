package main

import (
	"os"
	"strings"
)

// hostIdentity returns what two processes have in common only if they run on one machine, since one start
// of it, and in one network of it: the kernel's id of the start, and that of the network namespace.
// Containers on one machine differ in the second, machines with one name in the first. Two such processes
// cannot listen on one address at the same time. Empty where the system does not say: then nothing is
// certain.
func hostIdentity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || strings.TrimSpace(string(boot)) == "" {
		return ""
	}
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil || network == "" {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + network
}

// hostName returns the name of the machine or container, for people.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
