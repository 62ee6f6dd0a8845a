// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	checkpointSuffix = ".checkpoint"
	checkpointMark   = "session-checkpoint"
	// checkpointVersion is the version of the file. Files of another version are not used.
	checkpointVersion = 1
)

// A checkpointMeta is the first line of a checkpoint; the data follows.
type checkpointMeta struct {
	Drover  string `json:"drover"`
	Version int    `json:"version"`
	Pos     int64  `json:"pos"`
	// From and To are where the record is in the log; To is after its newline.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Log ties the checkpoint to its log: the hash of the header and the record, with their newlines.
	Log string `json:"log"`
	// Sum is the hash of the data.
	Sum string `json:"sum"`
}

func hashOf(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// SaveCheckpoint implements [Store]. The checkpoint that was there stays until the new one is complete.
func (s *FileStore) SaveCheckpoint(c Checkpoint) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	err := s.checkThere() // else it would be stored beside another log
	var meta checkpointMeta
	if err == nil {
		meta, err = s.describeCheckpoint(c)
	}
	if err == nil {
		err = s.writeCheckpoint(meta, c.Data)
	}
	if err != nil {
		return fmt.Errorf("session: saving a checkpoint of %s: %w", s.path, err)
	}
	return nil
}

func (s *FileStore) describeCheckpoint(c Checkpoint) (checkpointMeta, error) {
	end := s.kept()
	if c.Pos < 1 || c.Pos > end.pos {
		return checkpointMeta{}, fmt.Errorf("there is no record %d; the last is %d", c.Pos, end.pos)
	}
	at := seekRecord(s.f, c.Pos, logPosition{0, int64(len(s.headLine))}, end.offset)
	r := newLineReader(s.f, at.offset, end.offset)
	for {
		l, err := r.next()
		if err != nil {
			return checkpointMeta{}, s.readError(at, err)
		}
		if at = (logPosition{at.pos + 1, r.offset}); at.pos == c.Pos {
			log := hashOf(s.headLine, l.text, []byte{'\n'})
			return checkpointMeta{checkpointMark, checkpointVersion, c.Pos, l.at, at.offset, log, hashOf(c.Data)}, nil
		}
	}
}

func (s *FileStore) writeCheckpoint(meta checkpointMeta, data []byte) error {
	line, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	// There is one writer, so the name can be fixed, and what a crash left of it is replaced.
	name := s.path + checkpointSuffix
	f, err := replaceFile(name+".new", s.opts.Perm)
	if err != nil {
		return err
	}
	in := io.MultiReader(bytes.NewReader(line), bytes.NewReader([]byte{'\n'}), bytes.NewReader(data))
	if err := copyTo(f, in, s.opts.Sync); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// replaceFile creates or replaces a file. It follows no link that another user made, and waits for no reader of a pipe.
func replaceFile(name string, perm fs.FileMode) (*os.File, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// openCheckpoint opens what can only be a file: a pipe would block.
func (s *FileStore) openCheckpoint() (*os.File, error) {
	name := s.path + checkpointSuffix
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.Open(name)
}

func (s *FileStore) readCheckpoint() ([]byte, error) {
	f, err := s.openCheckpoint()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Checkpoint implements [Store]. It ignores a checkpoint that is damaged, or that does not belong to the log.
func (s *FileStore) Checkpoint() (Checkpoint, error) {
	s.mu.Lock()
	closed, end, headLine := s.closed, s.logEnd, s.headLine
	s.mu.Unlock()
	if closed {
		return Checkpoint{}, s.errClosed()
	}
	text, err := s.readCheckpoint()
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, nil
	}
	var meta checkpointMeta
	var data []byte
	if err == nil {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		data = rest
		meta, err = decodeCheckpoint(line)
	}
	if err == nil && hashOf(data) != meta.Sum {
		err = errors.New("its data is damaged")
	}
	if err == nil {
		err = belongs(meta, s.f, headLine, end.offset)
	}
	if err != nil {
		s.ignoreCheckpoint(err)
		return Checkpoint{}, nil
	}
	return Checkpoint{meta.Pos, data}, nil
}

func decodeCheckpoint(line []byte) (checkpointMeta, error) {
	var meta checkpointMeta
	if err := json.Unmarshal(line, &meta); err != nil {
		return meta, fmt.Errorf("it is damaged: %w", err)
	}
	if meta.Drover != checkpointMark || meta.Version != checkpointVersion {
		return meta, fmt.Errorf("it is not one of version %d", checkpointVersion)
	}
	return meta, nil
}

// belongs checks that a log of that length has the record that the checkpoint was made after.
func belongs(meta checkpointMeta, f io.ReaderAt, headLine []byte, length int64) error {
	other := errors.New("it belongs to another log, or to a longer one")
	size := meta.To - meta.From
	if len(headLine) == 0 || meta.From < int64(len(headLine)) || meta.To > length || size < 1 || size > maxRecord+1 {
		return other
	}
	line := make([]byte, size)
	if _, err := f.ReadAt(line, meta.From); err != nil {
		return err
	}
	if pos, _ := positionOf(line); pos != meta.Pos || hashOf(headLine, line) != meta.Log {
		return other
	}
	return nil
}

// checkedUpTo is where the checking of a log may begin: after its header, or after the record of a checkpoint of
// it. Any other checkpoint is deleted: it could match a log that is written again from an earlier position.
func (s *FileStore) checkedUpTo(size int64) logPosition {
	first := logPosition{0, int64(len(s.headLine))}
	f, err := s.openCheckpoint()
	if errors.Is(err, fs.ErrNotExist) {
		return first
	}
	var meta checkpointMeta
	if err == nil {
		meta, err = readCheckpointMeta(f)
		_ = f.Close() // only read
	}
	if err == nil {
		err = belongs(meta, s.f, s.headLine, size)
	}
	if err == nil {
		return logPosition{meta.Pos, meta.To}
	}
	s.ignoreCheckpoint(err)
	if !s.opts.ReadOnly {
		_ = os.Remove(s.path + checkpointSuffix) // at worst it is ignored again
	}
	return first
}

func readCheckpointMeta(f *os.File) (checkpointMeta, error) {
	l, err := newLineReader(f, 0, 4096).next() // several times what a line takes
	if err != nil {
		return checkpointMeta{}, err
	}
	return decodeCheckpoint(l.text)
}

func (s *FileStore) ignoreCheckpoint(err error) {
	s.opts.Logger.Warn("session checkpoint is not used", "path", s.path+checkpointSuffix, "error", err)
}
