// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Shapes are inputs by name. Each is made in a size of about n bytes.
type Shapes map[string]func(n int) string

// small is the allocation below which a ratio says nothing.
const small = 512 << 10

// LinearCost checks that ten times the input makes read allocate at most twenty times the memory, and that no input
// up to a size makes it allocate more than most bytes. In a soak it measures time and peak memory instead, of another
// process: twelve times the processor time, and 64 MiB and ten times the input.
func LinearCost(t *testing.T, shapes Shapes, full int, most uint64, read func(text string)) {
	t.Helper()
	if name := os.Getenv(childName); name != "" {
		n, _ := strconv.Atoi(os.Getenv(childSize))
		read(shapes[name](n))
		return
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			if Soak() {
				checkProcess(t, name, full)
				return
			}
			one, ten, all := allocated(read, shape(full/100)), allocated(read, shape(full/10)), allocated(read, shape(full))
			if ten > 20*max(one, small) {
				t.Errorf("ten times the input allocates %d bytes, and the input %d", ten, one)
			}
			if all > most {
				t.Errorf("%d bytes of input allocate %d bytes, want at most %d", full, all, most)
			}
		})
	}
}

func allocated(read func(string), text string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read(text)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const childName, childSize = "DROVER_TEST_COST_SHAPE", "DROVER_TEST_COST_SIZE"

// checkProcess runs the same test in processes of their own, which read one input each.
func checkProcess(t *testing.T, name string, full int) {
	t.Helper()
	top, _, _ := strings.Cut(t.Name(), "/")
	_, idle := measure(t, top, name, 1)
	before, _ := measure(t, top, name, full/100)
	for _, n := range []int{full / 10, full} {
		took, peak := measure(t, top, name, n)
		if took > 12*max(before, 0.1) {
			t.Errorf("%d bytes take %.2f s, and a tenth of them %.2f s", n, took, before)
		}
		if most := int64(64<<20 + 10*n); peak-idle > most {
			t.Errorf("%d bytes take %d bytes of memory, want at most %d", n, peak-idle, most)
		}
		before = took
	}
}

// measure returns processor seconds and the peak of the memory in bytes.
func measure(t *testing.T, top, name string, n int) (seconds float64, peak int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+top+"$")
	cmd.Env = append(os.Environ(), childName+"="+name, childSize+"="+strconv.Itoa(n))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, out))
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), peakOf(cmd.ProcessState)
}
