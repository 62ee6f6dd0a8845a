// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// openIn opens a cell whose home is in temp.
func openIn(t *testing.T, temp string, o isolation.Program, change func(*isolation.Isolation)) *isolation.Cell {
	t.Helper()
	i := &isolation.Isolation{APIKey: "key", TempDir: temp, Host: hostWith()}
	if change != nil {
		change(i)
	}
	cell, err := i.Open(t.Context(), o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cell
}

// waitForInput is a program that ends when its input does.
func waitForInput(cell *isolation.Cell) launch.Command {
	in := cell.Inside()
	return launch.Command{Path: "/bin/bash", Args: []string{"-c", "read x"}, Dir: in.Dir, Env: in.Environ()}
}

func TestCell_ClosedStartsNothing(t *testing.T) {
	needCell(t)
	for _, level := range []isolation.Level{isolation.LevelCell, isolation.LevelHost} {
		o := programIn(t.TempDir())
		cell := openIn(t, t.TempDir(), o, func(i *isolation.Isolation) { i.Strongest, i.Weakest = level, level })
		if err := cell.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := cell.Spawn(t.Context(), waitForInput(cell))
		if err == nil {
			_ = p.Kill()
		}
		if err == nil || !strings.Contains(advice.Text(err), "the cell is closed\n  next: ") {
			t.Errorf("%s: got %v, want that the cell is closed", level, err)
		}
	}
}

// Whenever Close comes, what was started has ended when it returns, and its home is gone.
func TestCell_CloseEndsAStartingProgram(t *testing.T) {
	needCell(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for n := range 12 {
		temp := t.TempDir()
		o := programIn(t.TempDir())
		cell := openIn(t, temp, o, nil)
		var starts sync.WaitGroup
		for range 2 {
			starts.Go(func() {
				p, err := cell.Spawn(context.Background(), waitForInput(cell))
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(io.Discard, p.Stdout()) }()
				if status := p.Wait(); status.Code == 0 {
					t.Errorf("after %d ms: the program was not ended by Close: %s", n*4, status)
				}
			})
		}
		time.Sleep(time.Duration(n) * 4 * time.Millisecond)
		if err := cell.Close(); err != nil {
			t.Errorf("after %d ms: %v", n*4, err)
		}
		ended := make(chan struct{})
		go func() { starts.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("after %d ms: a program outlives Close", n*4)
		}
		checkEmpty(t, temp)
	}
}

// A start that does not listen to its context is waited for, and what it has started is ended.
func TestCell_CloseWaitsForAStart(t *testing.T) {
	began := make(chan struct{})
	slow := launch.SpawnerFunc(func(ctx context.Context, cmd launch.Command) (launch.Process, error) {
		close(began)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return launch.HostSpawner{}.Spawn(context.Background(), cmd)
	})
	o := programIn(t.TempDir())
	o.Spawner = slow
	cell := openIn(t, t.TempDir(), o, func(i *isolation.Isolation) {
		i.Strongest, i.Weakest = isolation.LevelHost, isolation.LevelHost
	})
	ended := make(chan launch.ExitStatus, 1)
	go func() {
		p, err := cell.Spawn(context.Background(), waitForInput(cell))
		if err != nil {
			t.Error(err)
			return
		}
		ended <- p.Wait()
	}()
	<-began
	if err := cell.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a program outlives Close")
	}
}

// Each cell of a program, and each start in a cell, has limits of its own that the kernel keeps where it can.
func TestCell_SeveralStartsHaveTheSameProtection(t *testing.T) {
	needCell(t)
	dir := t.TempDir()
	var protections []string
	for range 2 {
		var events eventLog
		o := programIn(dir)
		i := &isolation.Isolation{APIKey: "key", TempDir: t.TempDir(), Host: hostWith()}
		cell, err := i.Open(t.Context(), o, isolation.OpenOptions{Emit: events.emit})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cell.Close() }()
		for range 2 {
			if _, err := cell.Spawn(t.Context(), waitForInput(cell)); err != nil {
				t.Fatal(err)
			}
		}
		protections = append(protections, fmt.Sprint(oneProtection(t, &events, isolation.LevelCell)))
	}
	if protections[0] != protections[1] {
		t.Errorf("the first cell has\n%s\nand the second\n%s", protections[0], protections[1])
	}
}

// The handler that is notified of a start may close the cell at once.
func TestCell_CanBeClosedInStarted(t *testing.T) {
	needCell(t)
	temp := t.TempDir()
	o := programIn(t.TempDir())
	var cell *isolation.Cell
	cell = openIn(t, temp, o, func(i *isolation.Isolation) {
		i.Started = func(launch.Process) {
			if err := cell.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	p, err := cell.Spawn(t.Context(), waitForInput(cell))
	if err != nil {
		t.Fatal(err)
	}
	if status := p.Wait(); status.Signal == "" && status.Code == 0 {
		t.Errorf("got %s, want a program that was ended", status)
	}
	checkEmpty(t, temp)
}

// A function of the caller's that panics leaves nothing behind.
func TestCell_PanicWhileOpeningLeavesNothing(t *testing.T) {
	needCell(t)
	for name, broken := range map[string]struct {
		populate func(*isolation.Home) error
		emit     func(event.Payload)
	}{
		"Populate panics": {populate: func(*isolation.Home) error { panic("broken") }},
		"Populate fails":  {populate: func(*isolation.Home) error { return errors.New("broken") }},
		"Emit panics":     {emit: func(event.Payload) { panic("broken") }},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			temp, work := t.TempDir(), t.TempDir()
			func() {
				defer func() { _ = recover() }()
				i := &isolation.Isolation{APIKey: "key", TempDir: temp, Host: hostWith(), Populate: broken.populate}
				cell, err := i.Open(t.Context(), programIn(work), isolation.OpenOptions{Emit: broken.emit})
				if err == nil {
					t.Error("the cell was opened", cell.Close())
				}
			}()
			checkEmpty(t, temp)
		})
	}
}

func TestOpen_UnknownLevelsAreRefused(t *testing.T) {
	for _, i := range []*isolation.Isolation{{Strongest: -1}, {Weakest: 4}, {Strongest: -1, Weakest: 7}} {
		i.APIKey, i.TempDir, i.Host = "key", t.TempDir(), hostWith()
		cell, err := i.Open(t.Context(), programIn(t.TempDir()), isolation.OpenOptions{})
		if err == nil {
			t.Errorf("Strongest %d, Weakest %d: a cell of level %s was opened", i.Strongest, i.Weakest, cell.Level())
			_ = cell.Close()
		} else if !strings.Contains(advice.Text(err), "\n  next: ") {
			t.Errorf("got %v, want what to do", err)
		}
	}
}
