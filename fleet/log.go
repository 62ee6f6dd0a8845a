// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
)

// ErrLost means that another holder has taken the log over, or that an append had an unknown outcome. What was
// appended before is kept; open the log again to go on.
var ErrLost = errors.New("fleet: this holder has lost the log")

// ErrEnded means that the run has ended. [Run.Retry] begins it again.
var ErrEnded = errors.New("fleet: the run has ended")

// A Log is the log of one run: a [session.Store] on JetStream. The last holder that opened it is the only one that can
// append: the server refuses the appends of earlier holders, wherever they run, with [ErrLost].
//
// An append is acknowledged when it is synced: by the embedded server always, by a cluster as its servers are configured.
type Log struct {
	f       *Fleet
	id      string
	subject string

	writing sync.Mutex // held by the goroutine that appends; comes before mu

	mu     sync.Mutex
	tail   logPosition // the last message
	head   session.Head
	closed bool
	lost   chan struct{}
}

// A logPosition is a message of a log, and what is known of those up to it.
type logPosition struct {
	seq        uint64
	records    int64  // the number of the last record
	head       uint64 // the sequence of the message with the head, or zero
	checkpoint uint64 // the same of the last checkpoint
	attempts   int64  // how often a worker began, not counting those that handed the run back, since the last retry
	failed     uint64 // the sequence of the last failure, or zero
	answer     uint64 // the same of the answer of the agent
	kind       string
}

const (
	headerKind   = "Drover-Kind"
	headerNonce  = "Drover-Nonce"  // of one append, also when it is sent again
	headerObject = "Drover-Object" // has the body
	headerHolder = "Drover-Holder" // of a claim
	headerFirst  = "Drover-First"  // the number of the first record in the message
	headerPos    = "Drover-Pos"    // the number of the record that a checkpoint is of
	// Each message has what is known of the log up to it, so that opening a log takes constant time.
	headerRecords    = "Drover-Records"
	headerHead       = "Drover-Head"
	headerCheckpoint = "Drover-Checkpoint"
	headerAttempts   = "Drover-Attempts"
	headerFailed     = "Drover-Failed"
	headerAnswer     = "Drover-Answer"

	// The kinds of messages in a log.
	kindClaim      = "claim"
	kindHead       = "head"
	kindRecords    = "records"
	kindCheckpoint = "checkpoint"
	kindFailed     = "failed"   // an attempt
	kindReleased   = "released" // a worker hands the run back
	kindJournal    = "journal"  // lines of the agent's conversations
	kindFiles      = "files"    // what a call has changed in the workspace, before its record
	kindAnswer     = "answer"   // of the agent, before the finish step
	kindEnd        = "end"
	kindRetry      = "retry" // after an end

	// sendTimeout bounds one attempt to append, and appendTimeout all of them.
	sendTimeout   = 5 * time.Second
	appendTimeout = 30 * time.Second
	readTimeout   = 30 * time.Second
	retryWait     = 50 * time.Millisecond
)

// OpenLog takes over the log of a run as its only holder. A new log is empty. The holder is a name for people. ID is one or more tokens of letters, digits, - and _, with dots between them.
func (f *Fleet) OpenLog(ctx context.Context, id, holder string) (*Log, error) {
	return f.openLog(ctx, id, holder, 0)
}

// openLog opens the log for a delivery of the request with a sequence. Zero means no delivery.
func (f *Fleet) openLog(ctx context.Context, id, holder string, request uint64) (*Log, error) {
	for token := range strings.SplitSeq(id, ".") {
		if !validToken(token) {
			return nil, advice.Wrap(fmt.Errorf("fleet: %q cannot be the id of a log", id), "use letters, digits, - and _, and dots between them")
		}
	}
	l := &Log{f: f, id: id, subject: f.name + ".log." + id, lost: make(chan struct{})}
	if err := l.claim(ctx, holder, request); err != nil {
		return nil, fmt.Errorf("fleet: opening the log %s: %w", id, err)
	}
	return l, nil
}

// claim makes this holder the last one.
func (l *Log) claim(ctx context.Context, holder string, request uint64) error {
	for {
		last, err := l.f.last(ctx, l.subject)
		if err != nil {
			return err
		}
		if l.tail, err = positionOf(&last); err != nil {
			return err
		}
		if l.tail.kind == kindEnd {
			return ErrEnded
		}
		if l.tail.kind == kindRemoved && request != 0 && request <= requestOf(&last) {
			return ErrEnded // the delivery is of the removed run
		}
		l.tail.attempts++
		m := l.message(kindClaim)
		m.Header.Set(headerHolder, holder)
		seq, err := l.f.append(ctx, m, last.seq)
		if errors.Is(err, errBehind) {
			continue // another one was faster
		}
		if err != nil {
			return err
		}
		l.tail.seq = seq
		return l.readHead(ctx)
	}
}

func (l *Log) readHead(ctx context.Context) error {
	if l.tail.head == 0 {
		return nil
	}
	m, err := l.f.message(ctx, l.subject, l.tail.head)
	if err != nil {
		return fmt.Errorf("reading the head: %w", err)
	}
	if err := json.Unmarshal(m.body, &l.head); err != nil {
		return fmt.Errorf("%w: its head: %w", session.ErrCorrupt, err)
	}
	return nil
}

func positionOf(m *message) (logPosition, error) {
	p := logPosition{seq: m.seq}
	if m.seq == 0 {
		return p, nil
	}
	p.kind = m.kind()
	var err [6]error
	p.records, err[0] = strconv.ParseInt(m.header.Get(headerRecords), 10, 64)
	p.head, err[1] = strconv.ParseUint(m.header.Get(headerHead), 10, 64)
	p.checkpoint, err[2] = strconv.ParseUint(m.header.Get(headerCheckpoint), 10, 64)
	p.attempts, err[3] = strconv.ParseInt(m.header.Get(headerAttempts), 10, 64)
	p.failed, err[4] = strconv.ParseUint(m.header.Get(headerFailed), 10, 64)
	p.answer, err[5] = strconv.ParseUint(m.header.Get(headerAnswer), 10, 64)
	if err := errors.Join(err[:]...); err != nil {
		return p, fmt.Errorf("%w: message %d: %w", session.ErrCorrupt, m.seq, err)
	}
	switch m.kind() {
	case kindHead:
		p.head = m.seq
	case kindCheckpoint:
		p.checkpoint = m.seq
	case kindFailed:
		p.failed = m.seq
	case kindAnswer:
		p.answer = m.seq
	}
	return p, nil
}

// Lost is closed when this holder learns that it cannot append any more.
func (l *Log) Lost() <-chan struct{} { return l.lost }

// message makes the next message. writing is held, so that tail does not change.
func (l *Log) message(kind string) *nats.Msg { return newMessage(l.subject, kind, l.tail) }

// newMessage makes the message of a log that follows a position.
func newMessage(subject, kind string, tail logPosition) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Header.Set(headerKind, kind)
	m.Header.Set(headerRecords, strconv.FormatInt(tail.records, 10))
	m.Header.Set(headerHead, strconv.FormatUint(tail.head, 10))
	m.Header.Set(headerCheckpoint, strconv.FormatUint(tail.checkpoint, 10))
	m.Header.Set(headerAttempts, strconv.FormatInt(tail.attempts, 10))
	m.Header.Set(headerFailed, strconv.FormatUint(tail.failed, 10))
	m.Header.Set(headerAnswer, strconv.FormatUint(tail.answer, 10))
	return m
}

// note appends a message about the run.
func (l *Log) note(kind string, body any) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	data, err := plainjson.Marshal(body)
	if err != nil {
		return fmt.Errorf("fleet: the run %s: %w", l.id, err)
	}
	m := l.message(kind)
	if kind == kindReleased {
		m.Header.Set(headerAttempts, strconv.FormatInt(l.tail.attempts-1, 10))
	}
	if err := l.put(m, data); err != nil {
		return fmt.Errorf("fleet: the run %s: %w", l.id, err)
	}
	return nil
}

// put appends a message. writing is held.
func (l *Log) put(m *nats.Msg, body []byte) error {
	l.mu.Lock()
	tail, err := l.tail.seq, l.usableLocked()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(l.f.ctx, appendTimeout)
	defer cancel()
	if err := l.f.setBody(ctx, m, l.id, body); err != nil {
		return err // nothing was appended
	}
	seq, err := l.f.append(ctx, m, tail)
	if err != nil {
		l.f.dropBody(m, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.tail, err = positionOf(&message{seq: seq, header: m.Header})
		return err
	}
	if refused := new(jetstream.APIError); errors.Is(err, errBehind) || !errors.As(err, &refused) { // it may have been kept
		l.loseLocked()
		err = advice.Wrap(fmt.Errorf("%w: %w", ErrLost, err), "stop this run; open the log again to go on")
	}
	return err
}

func (l *Log) loseLocked() {
	select {
	case <-l.lost:
	default:
		close(l.lost)
	}
}

func (l *Log) usableLocked() error {
	if l.closed {
		return session.ErrClosed
	}
	select {
	case <-l.lost:
		return ErrLost
	default:
		return nil
	}
}

// Head implements [session.Store].
func (l *Log) Head() (session.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := l.head
	head.Tags = maps.Clone(head.Tags)
	return head, l.closedLocked()
}

func (l *Log) closedLocked() error {
	if l.closed {
		return session.ErrClosed
	}
	return nil
}

// Init implements [session.Store].
func (l *Log) Init(head session.Head) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	begun, err := l.head, l.closedLocked()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if begun.Version != 0 {
		return fmt.Errorf("fleet: the log is begun already, by session %s", begun.ID)
	}
	body, err := plainjson.Marshal(head)
	if err != nil {
		return fmt.Errorf("fleet: beginning the log %s: %w", l.id, err)
	}
	if len(body) > l.f.limit {
		return advice.Wrap(fmt.Errorf("fleet: beginning the log %s: its tags are too large", l.id), "keep less in session.Options.Tags")
	}
	if err := l.put(l.message(kindHead), body); err != nil {
		return fmt.Errorf("fleet: beginning the log %s: %w", l.id, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = head
	l.head.Tags = maps.Clone(head.Tags)
	return nil
}

// Last implements [session.Store].
func (l *Log) Last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.records
}

// Append implements [session.Store]: the records are one message.
func (l *Log) Append(records []session.Record) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	last, begun, err := l.tail.records, l.head.Version != 0, l.usableLocked()
	l.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !begun:
		return errors.New("fleet: the log is not begun; call Init first")
	case len(records) == 0:
		return nil
	}
	var body []byte
	for i, r := range records {
		if r.Pos != last+1+int64(i) {
			return fmt.Errorf("fleet: record %d cannot follow record %d", r.Pos, last+int64(i))
		}
		if bytes.IndexByte(r.Data, '\n') >= 0 {
			return fmt.Errorf("fleet: record %d has more than one line", r.Pos)
		}
		body = append(append(body, r.Data...), '\n')
	}
	m := l.message(kindRecords)
	m.Header.Set(headerFirst, strconv.FormatInt(last+1, 10))
	m.Header.Set(headerRecords, strconv.FormatInt(last+int64(len(records)), 10))
	if err := l.put(m, body); err != nil {
		return fmt.Errorf("fleet: appending to the log %s: %w", l.id, err)
	}
	return nil
}

// Records implements [session.Store]. It reads the log from its beginning, or from the last checkpoint.
func (l *Log) Records(after int64) iter.Seq2[session.Record, error] {
	l.mu.Lock()
	tail, err := l.tail, l.closedLocked()
	l.mu.Unlock()
	return func(yield func(session.Record, error) bool) {
		if err == nil && max(after, 0) < tail.records {
			err = l.records(max(after, 0), tail, yield)
		}
		if err != nil {
			yield(session.Record{}, fmt.Errorf("fleet: reading the log %s: %w", l.id, err))
		}
	}
}

// records yields the records above a number up to a position.
func (l *Log) records(after int64, tail logPosition, yield func(session.Record, error) bool) error {
	from, last := tail.head, after
	if at := tail.checkpoint; at != 0 {
		m, err := l.f.message(l.f.ctx, l.subject, at)
		if err != nil {
			return err
		}
		if p, err := positionOf(m); err == nil && p.records <= after {
			from = at // the records up to here come before the checkpoint
		}
	}
	for m, err := range l.f.messages(l.f.ctx, l.subject, from, tail.seq) {
		if err != nil {
			return err
		}
		if m.kind() != kindRecords {
			continue
		}
		pos, err := strconv.ParseInt(m.header.Get(headerFirst), 10, 64)
		if err != nil || pos > last+1 {
			return fmt.Errorf("%w: record %q comes after %d", session.ErrCorrupt, m.header.Get(headerFirst), last)
		}
		for line := range bytes.Lines(m.body) {
			if pos > after {
				if !yield(session.Record{Pos: pos, Data: bytes.TrimSuffix(line, []byte("\n"))}, nil) {
					return nil
				}
				last = pos
			}
			pos++
		}
	}
	if last != tail.records {
		return fmt.Errorf("%w: it ends at record %d instead of %d", session.ErrCorrupt, last, tail.records)
	}
	return nil
}

// SaveCheckpoint implements [session.Store].
func (l *Log) SaveCheckpoint(c session.Checkpoint) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	last, err := l.tail.records, l.usableLocked()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if c.Pos < 1 || c.Pos > last {
		return fmt.Errorf("fleet: saving a checkpoint: there is no record %d; the last is %d", c.Pos, last)
	}
	m := l.message(kindCheckpoint)
	m.Header.Set(headerPos, strconv.FormatInt(c.Pos, 10))
	if err := l.put(m, c.Data); err != nil {
		return fmt.Errorf("fleet: saving a checkpoint of the log %s: %w", l.id, err)
	}
	return nil
}

// Checkpoint implements [session.Store].
func (l *Log) Checkpoint() (session.Checkpoint, error) {
	l.mu.Lock()
	at, err := l.tail.checkpoint, l.closedLocked()
	l.mu.Unlock()
	if err != nil || at == 0 {
		return session.Checkpoint{}, err
	}
	m, err := l.f.message(l.f.ctx, l.subject, at)
	if err != nil {
		return session.Checkpoint{}, fmt.Errorf("fleet: reading the checkpoint of the log %s: %w", l.id, err)
	}
	pos, err := strconv.ParseInt(m.header.Get(headerPos), 10, 64)
	if err != nil {
		return session.Checkpoint{}, fmt.Errorf("%w: the log %s: its checkpoint is of record %q", session.ErrCorrupt, l.id, m.header.Get(headerPos))
	}
	return session.Checkpoint{Pos: pos, Data: m.body}, nil
}

// Close implements [session.Store]. The log stays, and can be opened again.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// A message is one of a stream.
type message struct {
	seq     uint64
	header  nats.Header
	body    []byte
	subject string
	time    time.Time // when the server kept it
}

func (m *message) kind() string { return m.header.Get(headerKind) }

// last returns the last message of a subject, without the body of an object, or the zero value.
func (f *Fleet) last(ctx context.Context, subject string) (message, error) {
	m, err := f.streamOf(subject).GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return message{}, nil
	}
	if err != nil {
		return message{}, fmt.Errorf("reading the last message: %w", err)
	}
	return message{m.Sequence, m.Header, m.Data, m.Subject, m.Time}, nil
}

// errBehind means that the subject has a later message than the one that was expected.
var errBehind = errors.New("another holder has appended")

// append appends a message to its subject, or the subjects of its run, whose last message is the expected one, and returns its sequence when it is
// kept. It sends the message again as long as the outcome is unknown. An [jetstream.APIError] means that it was refused; with
// any other error but errBehind the outcome is unknown.
func (f *Fleet) append(ctx context.Context, m *nats.Msg, expected uint64) (uint64, error) {
	nonce, subject := ident.NewUUID(), f.exclusive(m.Subject)
	m.Header.Set(headerNonce, nonce)
	for {
		try, cancel := context.WithTimeout(ctx, sendTimeout)
		ack, err := f.js.PublishMsg(try, m, jetstream.WithExpectLastSequenceForSubject(expected, subject), jetstream.WithRetryAttempts(0))
		cancel()
		if err == nil {
			return ack.Sequence, nil
		}
		refused := new(jetstream.APIError)
		switch {
		case isConflict(err):
			last, failed := f.last(ctx, subject)
			switch {
			case failed == nil && last.seq > expected && last.header.Get(headerNonce) == nonce:
				return last.seq, nil // sent before, and the acknowledgement was lost
			case failed == nil && last.seq > expected:
				return 0, errBehind
			} // else another append is under way
		case errors.As(err, &refused) && refused.Code != 503 && refused.Code != 408:
			return 0, err
		case errors.Is(err, nats.ErrConnectionClosed):
			return 0, fmt.Errorf("%w (%w)", errUnknownOutcome, err)
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w (%w)", errUnknownOutcome, err)
		case <-time.After(retryWait):
		}
	}
}

var errUnknownOutcome = errors.New("the server has not answered in time, and may have kept it")

func isConflict(err error) bool {
	refused := new(jetstream.APIError)
	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// setBody gives a message its body. A long one becomes an object, which is kept before the message is sent.
func (f *Fleet) setBody(ctx context.Context, m *nats.Msg, owner string, body []byte) error {
	if len(body) <= f.limit {
		m.Data = body
		return nil
	}
	name := owner + "." + ident.NewUUID()
	if _, err := f.objects.PutBytes(ctx, name, body); err != nil {
		return fmt.Errorf("keeping %d bytes: %w", len(body), err)
	}
	m.Header.Set(headerObject, name)
	return nil
}

// dropBody removes the object of a message that was refused.
func (f *Fleet) dropBody(m *nats.Msg, err error) {
	name := m.Header.Get(headerObject)
	if name == "" || errors.Is(err, errUnknownOutcome) {
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, sendTimeout)
	defer cancel()
	if err := f.objects.Delete(ctx, name); err != nil {
		f.log.Warn("the object of a refused message is left", "object", name, "error", err)
	}
}

// messages yields the messages of a subject from one sequence to another, both included. The last one must exist. An
// error is the last pair.
func (f *Fleet) messages(ctx context.Context, subject string, from, to uint64) iter.Seq2[*message, error] {
	return func(yield func(*message, error) bool) {
		for from <= to {
			m, err := f.message(ctx, subject, from)
			if !yield(m, err) || err != nil {
				return
			}
			from = m.seq + 1
		}
	}
}

// message reads the first message of a subject that has this sequence or a higher one. The leader of the stream answers.
func (f *Fleet) message(ctx context.Context, subject string, seq uint64) (*message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	raw, err := f.streamOf(subject).GetMsg(ctx, max(seq, 1), jetstream.WithGetMsgSubject(subject))
	if err != nil {
		return nil, err
	}
	m := &message{raw.Sequence, raw.Header, raw.Data, raw.Subject, raw.Time}
	if name := m.header.Get(headerObject); name != "" {
		if m.body, err = f.objects.GetBytes(ctx, name); err != nil {
			return nil, fmt.Errorf("the body of message %d: %w", m.seq, err)
		}
	}
	return m, nil
}
