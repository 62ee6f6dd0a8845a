// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummary_Cases(t *testing.T) {
	cases := []struct {
		name, in, want string
		failed         bool
		cpu            map[string]float64
	}{
		{
			name: "passes",
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.5}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestB/slow"}
{"Action":"pass","Package":"p","Test":"TestB/slow","Elapsed":2}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":2}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t2.5s\n"}
{"Action":"pass","Package":"p","Elapsed":2.5}
`,
			want: "slowest of 2 tests\n    2.00 s  p TestB/slow\n    0.50 s  p TestA\nok  \tp\t2.5s\n",
		},
		{
			name: "CPU time",
			in:   `{"Action":"output","Package":"p","Output":"ok  \tp\t2.5s\n"}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":2.5}` + "\n",
			cpu:  map[string]float64{"p": 7, "p/q": 30.25, ".": 7},
			want: "slowest of 0 tests\n    30.2 s  of CPU  p/q\n     7.0 s  of CPU  .\n     7.0 s  of CPU  p\n    44.2 s  of CPU  in all\nok  \tp\t2.5s\n",
		},
		{
			name:   "failure is shown in full, and last",
			failed: true,
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
{"Action":"output","Package":"q","Output":"ok  \tq\t0.2s\n"}
{"Action":"pass","Package":"q","Elapsed":0.2}
`,
			want: "--- failed: p TestA (0.10 s)\n        a_test.go:3: got 1, want 2\n--- failed: p\n" +
				"slowest of 1 tests\n    0.10 s  p TestA\nok  \tq\t0.2s\nFAIL\tp\t0.1s\n" +
				"failed: p TestA (0.10 s)\n        a_test.go:3: got 1, want 2\nfailed: p\n",
		},
		{
			name:   "build failure",
			failed: true,
			in: `{"ImportPath":"p","Action":"build-output","Output":"p.go:1:1: broken\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}
`,
			want: "--- does not build: p\np.go:1:1: broken\n--- failed: p\nslowest of 0 tests\nFAIL\tp [build failed]\n" +
				"does not build: p\nfailed: p\n",
		},
		{
			name:   "a panic leaves tests without an end",
			failed: true,
			in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
`,
			want: "--- never ended: p TestA\n    panic: oh\n--- failed: p\nslowest of 0 tests\nFAIL\tp\n" +
				"never ended: p TestA\n    panic: oh\nfailed: p\n",
		},
		{
			name: "other lines pass through",
			in:   "not json\n",
			want: "not json\nslowest of 0 tests\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out)
			if err := s.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			s.finish(c.cpu)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := s.failed(); got != c.failed {
				t.Errorf("failed: got %v, want %v", got, c.failed)
			}
		})
	}
}
