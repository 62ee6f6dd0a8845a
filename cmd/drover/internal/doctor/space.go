// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Less than littleSpace is worth a warning; with less than tooLittleSpace a run would soon fail.
const (
	littleSpace    = 1_000_000_000
	tooLittleSpace = 100_000_000
)

// examineDisk looks at the folder that a run would work in.
func (m *machine) examineDisk(context.Context) *Check {
	dir, err := m.options.WorkDir()
	if err != nil {
		return &Check{State: stateBroken, Detail: "the working folder cannot be used: " + reasonOfFolder(err), Fix: []string{"cd to a folder that exists and that you may enter"}}
	}
	return m.examineSpace(dir, "df -h . && du -xh --max-depth=1 .   shows what takes the space")
}

// examineTemp really writes a file, and removes it.
func (m *machine) examineTemp(context.Context) *Check {
	dir := m.tempDir()
	if err := tryToWrite(dir); err != nil {
		return &Check{State: stateBroken, Path: dir, Detail: "cannot write to " + dir + ": " + reasonOfPath(err), Fix: []string{"export TMPDIR=/a/folder/that/can/be/written"}}
	}
	return m.examineSpace(dir, "export TMPDIR=/a/folder/with/space")
}

func (m *machine) examineSpace(dir, fix string) *Check {
	c := &Check{State: stateOK, Path: dir}
	free, err := m.free(dir)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		c.State, c.Detail = stateSkipped, "free space is not known on "+m.goos
		return c
	case err != nil:
		c.State, c.Detail, c.Fix = stateBroken, "cannot look at "+dir+": "+reasonOfPath(err), []string{fix}
		return c
	case free < tooLittleSpace:
		c.State, c.Fix = stateBroken, []string{fix}
	case free < littleSpace:
		c.State, c.Fix = stateWarning, []string{fix}
	}
	c.FreeBytes = &free
	c.Detail = byteCount(free) + " free in " + dir
	if c.State != stateOK {
		c.Detail = "only " + c.Detail
	}
	return c
}

// tryToWrite writes a file of some size into dir and removes it: a full disk may still have room for a name.
func tryToWrite(dir string) error {
	file, err := os.CreateTemp(dir, "drover-doctor-")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 64<<10))
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

// reasonOfFolder leaves out by which call it was found.
func reasonOfFolder(err error) string {
	if system, ok := errors.AsType[syscall.Errno](err); ok {
		return system.Error()
	}
	return err.Error()
}

// reasonOfPath leaves out the name of the file that could not be made, which is random.
func reasonOfPath(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// byteCount is a size for people: "80 GB", "1.2 GB", "90 MB".
func byteCount(n uint64) string {
	const kilo = 1000
	switch {
	case n >= 10*kilo*kilo*kilo:
		return fmt.Sprintf("%d GB", n/(kilo*kilo*kilo))
	case n >= kilo*kilo*kilo:
		return fmt.Sprintf("%.1f GB", float64(n)/(kilo*kilo*kilo))
	case n >= kilo*kilo:
		return fmt.Sprintf("%d MB", n/(kilo*kilo))
	}
	return fmt.Sprintf("%d kB", n/kilo)
}
