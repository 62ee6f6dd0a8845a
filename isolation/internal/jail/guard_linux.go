// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"debug/elf"
	"io"
	"path"
	"slices"
	"strings"
)

// guardPath is where the loader finds the guard inside.
const guardPath = "/run/drover/guard.so"

// Guardable reports whether [Spec.Guard] works for a program of the host: its loader must be glibc's, for this processor.
func Guardable(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(p.Open())
			return err == nil && file.Machine == guardMachine && strings.HasPrefix(path.Base(string(loader)), "ld-linux")
		}
	}
	return false
}

// guard adds what [Spec.Guard] asks for. Bun writes libraries that are part of a program to the folder of
// BUN_TMPDIR and loads them from there: in one that others can write, they could exchange a library for theirs.
// That of the guard is read-only, so that the program does without such libraries.
func (s *Spec) guard() {
	if s.Guard {
		s.Files = append(slices.Clip(s.Files), File{Path: guardPath, Data: guardELF})
		s.Env = append(slices.Clip(s.Env), "LD_PRELOAD="+guardPath, "BUN_TMPDIR="+path.Dir(guardPath))
	}
}
