// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

func parallel(t *testing.T, o compose.ParallelOptions, parts ...*tool.Tool) *tool.Tool {
	t.Helper()
	p, err := compose.Parallel("all", "All at once.", parts, o)
	return sound(t, p, err)
}

// slowTool takes its time, unless it is stopped.
func slowTool(name string, d time.Duration, err error) *tool.Tool {
	return tool.Must(name, "Takes its time.", func(ctx context.Context, p addend) (addend, error) {
		select {
		case <-time.After(d):
			return p, err
		case <-ctx.Done():
			return addend{}, ctx.Err()
		}
	})
}

func TestParallel_ResultIsAnObjectByPartName(t *testing.T) {
	p := parallel(
		t, compose.ParallelOptions{}, adder("ten", 10), adder("one", 1), answering("list", tool.OK([]string{"x"})),
		answering("text", tool.Text("done")), answering("odd", tool.OK(func() {})), answering("picture", tool.Result{Value: true, Images: []tool.Image{{MIMEType: "image/png"}}}),
	)
	r := runComposed(p, `{"n":5}`)
	want := `{"list":["x"],"odd":"[unserializable]","one":{"n":6},"picture":true,"ten":{"n":15},"text":"done"}`
	if got := string(r.Structured); got != want {
		t.Errorf("structured = %s, want %s", got, want)
	}
	if got := r.Render(); got != want {
		t.Errorf("the model reads %s, want %s", got, want)
	}
	if len(r.Images) != 1 {
		t.Errorf("%d images, want 1", len(r.Images))
	}
}

func TestParallel_FirstFailureStopsTheOtherParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := parallel(t, compose.ParallelOptions{}, slowTool("long", time.Hour, nil), slowTool("bad", time.Second, errors.New("no luck")), slowTool("worse", time.Minute, errors.New("late")))
		began := time.Now()
		r := p.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`)})
		if got, want := r.Render(), "Part bad: Error: no luck"; got != want || r.Outcome != tool.Failed {
			t.Errorf("%s: %q, want %q", r.Outcome, got, want)
		}
		if got := time.Since(began); got != time.Second {
			t.Errorf("it took %s, want 1s", got)
		}
	})
}

func TestParallel_CollectRunsEveryPart(t *testing.T) {
	denied := answering("denied", tool.Result{Outcome: tool.Denied})
	asks := answering("asks", tool.Result{Outcome: tool.NeedsApproval})
	bad := failing("bad", tool.Errorf(tool.CategoryTransient, "no luck"))
	cancelled := failing("cancelled", context.Canceled)
	cases := []struct {
		name  string
		parts []*tool.Tool
		want  tool.Outcome
		text  string
	}{
		{"one failed", []*tool.Tool{bad, adder("one", 1)}, tool.Success, `{"bad":{"error":{"code":"FAILED","category":"transient","message":"no luck","retryable":true}},"one":{"n":2}}`},
		{"all failed", []*tool.Tool{bad, failing("too", errors.New("oh"))}, tool.Failed, "Part bad: no luck"},
		{"one cancelled", []*tool.Tool{adder("one", 1), bad, cancelled}, tool.Cancelled, "Part cancelled: Cancelled"},
		{"one asks", []*tool.Tool{adder("one", 1), bad, cancelled, asks}, tool.NeedsApproval, "Part asks: "},
		{"one denied", []*tool.Tool{adder("one", 1), bad, asks, cancelled, denied}, tool.Denied, "Part denied: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := runComposed(parallel(t, compose.ParallelOptions{Collect: true}, c.parts...), `{"n":1}`)
			if r.Outcome != c.want || !strings.HasPrefix(r.Render(), c.text) {
				t.Errorf("%s: %s, want %s: %s", r.Outcome, r.Render(), c.want, c.text)
			}
		})
	}
}

func TestParallel_DenialOverridesAnEarlierFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn := tool.Must("denied", "Is denied in the end.", func(ctx context.Context, _ addend) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{Outcome: tool.Denied}, nil
		})
		p := parallel(t, compose.ParallelOptions{}, slowTool("bad", time.Second, errors.New("oh")), stubborn)
		if r := p.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`)}); r.Outcome != tool.Denied {
			t.Errorf("outcome = %s, want denied", r.Outcome)
		}
	})
}

func TestParallel_BoundsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		var parts []*tool.Tool
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			parts = append(parts, tool.Must(name, "Counts.", func(context.Context, addend) (addend, error) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				return addend{}, nil
			}))
		}
		began := time.Now()
		r := parallel(t, compose.ParallelOptions{Concurrency: 2}, parts...).Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`)})
		if !r.OK() || most.Load() != 2 || time.Since(began) != 3*time.Second {
			t.Errorf("%s: %d at once, in %s; want 2 in 3s", r.Outcome, most.Load(), time.Since(began))
		}
	})
}

func TestParallel_InputMustFitEveryPart(t *testing.T) {
	reordered := adder("reordered", 1, tool.WithInput(schema.MustParse(`{"required":["n"],"additionalProperties":false,"properties":{"n":{"type":"integer"}},"type":"object"}`)))
	anything := answering("anything", tool.OK(1))
	anything.Input = nil
	p := parallel(t, compose.ParallelOptions{}, anything, adder("one", 1), reordered)
	for _, input := range []string{`{"n":1}`, `{}`, `{"n":1.5}`, `{"n":1,"m":2}`} {
		whole := p.Input.Validate(json.RawMessage(input)) == nil
		parts := adder("one", 1).Input.Validate(json.RawMessage(input)) == nil && reordered.Input.Validate(json.RawMessage(input)) == nil
		if whole != parts {
			t.Errorf("%s: the whole takes it: %t, all parts: %t", input, whole, parts)
		}
	}
}

func TestParallel_DifferentParametersNeedASchema(t *testing.T) {
	text := tool.Must("text", "Takes a text.", func(_ context.Context, p struct {
		S string `json:"s"`
	},
	) (string, error) {
		return p.S, nil
	})
	parts := []*tool.Tool{adder("one", 1), text}
	if _, err := compose.Parallel("all", "All.", parts, compose.ParallelOptions{}); err == nil || !strings.Contains(advice.Text(err), "parts one and text have different parameters") {
		t.Errorf("error = %v, want one that names both parts", err)
	}
	parts[1] = compose.Preprocess(text, func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"s":"as text"}`), nil
	}, tool.WithInput(parts[0].Input))
	r := runComposed(parallel(t, compose.ParallelOptions{}, parts...), `{"n":1}`)
	if got, want := r.Render(), `{"one":{"n":2},"text":"as text"}`; got != want {
		t.Errorf("result = %s, want %s", got, want)
	}
}

func TestParallel_RefusesTwoPartsOfOneName(t *testing.T) {
	_, err := compose.Parallel("all", "All.", []*tool.Tool{adder("one", 1), adder("one", 2)}, compose.ParallelOptions{})
	if err == nil || !strings.Contains(advice.Text(err), "two parts are called one") {
		t.Errorf("error = %v, want that two parts are called one", err)
	}
}

func TestParallel_ModelReadsOnlyMessagesOfHiddenParts(t *testing.T) {
	secret := answering("secret", tool.Result{Value: "s3cret", Message: "Stored.", HideValue: true})
	r := runComposed(parallel(t, compose.ParallelOptions{Collect: true}, secret, adder("one", 1), failing("bad", errors.New("oh"))), `{"n":1}`)
	if got, want := r.Render(), "secret: Stored.\nbad: Error: oh"; got != want {
		t.Errorf("the model reads %q, want %q", got, want)
	}
	values, _ := r.Value.(map[string]json.RawMessage)
	if diff := cmp.Diff(`"s3cret"`, string(values["secret"])); diff != "" {
		t.Errorf("value for programs (-want +got):\n%s", diff)
	}
}

func TestParallel_HasADryRunIfAllPartsHaveOne(t *testing.T) {
	dry := tool.WithDryRun(func(_ context.Context, input json.RawMessage) (tool.Result, error) {
		return tool.Text("would add"), nil
	})
	if p := parallel(t, compose.ParallelOptions{}, adder("a", 1, dry), adder("b", 1)); p.DryRun != nil {
		t.Error("DryRun is set, though a part has none")
	}
	p := parallel(t, compose.ParallelOptions{}, adder("a", 1, dry), adder("b", 1, dry))
	r := p.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`), DryRun: true})
	if got, want := r.Render(), `{"a":"would add","b":"would add"}`; got != want {
		t.Errorf("result = %s, want %s", got, want)
	}
}
