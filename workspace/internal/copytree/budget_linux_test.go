// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// Many names of one file are within a budget that many files are not, also when another process removes the first.
func TestCopy_FileThatLosesANameIsCopiedOnce(t *testing.T) {
	src := t.TempDir()
	write(t, src, "a")
	for i := range 5 {
		must(t, os.Link(filepath.Join(src, "a"), filepath.Join(src, fmt.Sprint("name", i))))
	}
	limit := int64(1)
	plan, err := NewPlan(t.Context(), Source{open(t, src), "."}, Options{MaxBytes: &limit})
	must(t, err)
	must(t, os.Remove(filepath.Join(src, "a")))
	must(t, os.Remove(filepath.Join(src, "name0")))
	dst := t.TempDir()
	sum, err := plan.Copy(t.Context(), open(t, dst), "copy", 2)
	must(t, err)
	if diff := cmp.Diff(Summary{Files: 4, Bytes: 1, First: []string{"name1", "name2"}}, sum); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(describe(t, src), describe(t, filepath.Join(dst, "copy"))); diff != "" {
		t.Errorf("-source +copy:\n%s", diff)
	}
}

func TestPlan_SumThatOverflowsExceedsTheBudget(t *testing.T) {
	limit := int64(100)
	plan := &Plan{opts: Options{MaxBytes: &limit}}
	for range 2 {
		plan.items = append(plan.items, &item{entry: filetree.Entry{Size: math.MaxInt64/2 + 1}})
	}
	if _, ok := errors.AsType[*TooLarge](plan.checkBytes()); !ok {
		t.Errorf("%d bytes are within %d", uint64(math.MaxInt64)+1, limit)
	}
}
