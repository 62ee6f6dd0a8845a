// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/session"
)

// A Line is an entry of a log as it is stored: its number, and the event as JSON in the form of docs/events.md.
type Line struct {
	Pos   int64
	Event json.RawMessage
}

// Follow yields the entries of the log behind a position, without reading what they say. Of a run in progress it waits for more,
// until the run ends or ctx does; the State of the run is then up to date. An error is the last pair. A line that is half
// written is left out when its program is gone.
func (r *Run) Follow(ctx context.Context, after int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if err := r.follow(ctx, after, true, func(l Line) bool { return yield(l, nil) }); err != nil {
			yield(Line{}, fmt.Errorf("record: %s: %s: %w", r.Path, eventsFile, err))
		}
	}
}

// Lines yields the entries of the log that there are, as [Run.Follow] does.
func (r *Run) Lines(after int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if err := r.follow(context.Background(), after, false, func(l Line) bool { return yield(l, nil) }); err != nil {
			yield(Line{}, fmt.Errorf("record: %s: %s: %w", r.Path, eventsFile, err))
		}
	}
}

func (r *Run) follow(ctx context.Context, after int64, wait bool, yield func(Line) bool) error {
	f, err := r.files.Open(eventsFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	wait = wait && r.State == Running
	var grown <-chan struct{}
	var end *ending
	if wait {
		log := plainfile.NewWatch(r.Path, eventsFile) // before the first read
		defer log.Close()
		grown, end = log.Changed(), r.watchEnd()
		defer end.watch.Close()
	}
	in := bufio.NewReaderSize(f, 64<<10)
	var (
		line   []byte // what was read of the next line
		header = true
		over   = !wait
	)
	for ctx.Err() == nil {
		part, err := in.ReadSlice('\n')
		switch line = append(line, part...); {
		case len(line) > maxTranscript:
			return fmt.Errorf("a line has more than %d bytes", maxTranscript)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil && header:
			header = false
		case err == nil:
			parsed, err := parseLine(line)
			if err != nil {
				return err
			}
			if parsed.Pos > after && !yield(parsed) {
				return nil
			}
		case !errors.Is(err, io.EOF):
			return err
		case over && len(line) > 0 && r.State == Ended:
			return session.ErrTorn
		case over:
			return nil
		default:
			// The end is written after the log: what is found once it is there is all.
			if over, err = end.wait(ctx, grown); err != nil {
				return err
			}
			continue
		}
		line = line[:0]
	}
	return nil
}

// AwaitEnd waits until a run in progress is over, or ctx has ended. The State and the End of the run are then up to date.
func (r *Run) AwaitEnd(ctx context.Context) error {
	if r.State != Running {
		return nil
	}
	end := r.watchEnd()
	defer end.watch.Close()
	for ctx.Err() == nil {
		if over, err := end.wait(ctx, nil); over || err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// An ending waits for the end of a run.
type ending struct {
	run   *Run
	watch *plainfile.Watch
	again <-chan time.Time
	pause time.Duration
}

// The system releases a lock a moment after it reports that the file was closed, so a lock is looked at again, less and less often.
const (
	firstPause = time.Millisecond
	lastPause  = 2 * time.Second
)

func (r *Run) watchEnd() *ending {
	return &ending{run: r, watch: plainfile.NewWatch(r.Path, endFile, lockFile), again: time.After(0), pause: lastPause} // it may be over already
}

// wait waits for a change of the log, or for something that may be the end, and reports whether it is.
func (e *ending) wait(ctx context.Context, grown <-chan struct{}) (over bool, err error) {
	select {
	case <-ctx.Done():
		return false, nil
	case <-grown:
		return false, nil
	case <-e.watch.Changed():
		if !e.watch.Looks() { // who looks comes again
			e.pause = firstPause
		}
	case <-e.again:
	}
	if over, err = e.run.refresh(); over || err != nil {
		return over, err
	}
	e.again = nil
	if e.pause < lastPause {
		e.again = time.After(e.pause)
		e.pause *= 2
	}
	return false, nil
}

// refresh brings State and End up to date, and reports whether the run is over.
func (r *Run) refresh() (over bool, err error) {
	locked, err := isLocked(r.Path)
	if err != nil {
		return false, err
	}
	if locked && !r.hasEnd() {
		return false, nil
	}
	again, err := openRun(r.files, r.Path, locked)
	if errors.Is(err, fs.ErrNotExist) {
		return false, errors.New("the run was removed")
	}
	if err != nil {
		return false, err
	}
	r.State, r.End = again.State, again.End
	return r.State != Running, nil
}

func (r *Run) hasEnd() bool {
	_, err := os.Lstat(filepath.Join(r.Path, endFile))
	return err == nil
}

var errBadLine = errors.New("a line is not an entry of a log")

// parseLine cuts the event out of {"pos":12,...,"event":{...}}. In a JSON text the key cannot be anything else: quotes in it are
// escaped.
func parseLine(line []byte) (Line, error) {
	line = bytes.TrimRight(line, "\r\n")
	number, ok := bytes.CutPrefix(line, []byte(`{"pos":`))
	_, text, found := bytes.Cut(line, []byte(`"event":`))
	if !ok || !found || !bytes.HasSuffix(text, []byte("}")) {
		return Line{}, errBadLine
	}
	number = number[:bytes.IndexFunc(number, func(c rune) bool { return c < '0' || c > '9' })]
	pos, err := strconv.ParseInt(string(number), 10, 64)
	event := text[:len(text)-1]
	if err != nil || !bytes.HasPrefix(event, []byte("{")) {
		return Line{}, errBadLine
	}
	// The position is the envelope's own field, and the reader's way to come back.
	return Line{pos, append(strconv.AppendInt([]byte(`{"position":"`), pos, 10), append([]byte(`",`), event[1:]...)...)}, nil
}
