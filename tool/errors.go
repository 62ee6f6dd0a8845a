// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/drover-agents/drover/advice"
)

// A Category is the kind of a failure.
type Category string

// The categories.
const (
	CategoryValidation Category = "validation"
	CategoryPermission Category = "permission"
	CategoryNotFound   Category = "not_found"
	CategoryConflict   Category = "conflict"
	CategoryTransient  Category = "transient"
	CategoryTimeout    Category = "timeout"
	CategoryCancelled  Category = "cancelled"
	CategoryInternal   Category = "internal"
)

// The codes of the failures that this package makes. Handlers may use their own.
const (
	CodeInvalidInput  = "INVALID_INPUT"
	CodeInvalidOutput = "INVALID_OUTPUT"
	CodeUnknownTool   = "UNKNOWN_TOOL"
	CodeNotServed     = "NOT_SERVED"
	CodeNoDryRun      = "NO_DRY_RUN"
	CodeDenied        = "DENIED"
	CodeNeedsApproval = "NEEDS_APPROVAL"
	CodeBudget        = "BUDGET_EXCEEDED"
	CodeTimeout       = "TIMEOUT"
	CodeCancelled     = "CANCELLED"
	CodePanic         = "PANIC"
	CodeFailed        = "FAILED"
	CodeRateLimited   = "RATE_LIMITED"
	CodeConnection    = "CONNECTION_FAILED"
)

// An Error is why a call did not succeed. Handlers return one to say more than that they failed.
type Error struct {
	Code     string
	Category Category
	// Message is what the model reads. It should say what to do next.
	Message string
	// Retryable is set if the same call may succeed later; RetryAfter when, if that is known.
	Retryable  bool
	RetryAfter time.Duration
	// Details is for programs. It must have a JSON form.
	Details any
	// Err is the cause, for programs.
	Err error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a category. Transient ones are retryable. A %w is kept as the cause.
func Errorf(category Category, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if cause == nil && strings.Contains(format, "%w") {
		cause = err // it wraps several
	}
	return &Error{Code: CodeFailed, Category: category, Message: advice.Text(err), Retryable: category == CategoryTransient, Err: cause}
}

// meant takes a nil *Error in an error for none.
func meant(err error) error {
	var e *Error
	if errors.As(err, &e) && e == nil {
		return nil
	}
	return err
}

// InvalidInput makes the error of a call with wrong arguments, as a schema does, for rules that a schema cannot express.
func InvalidInput(err error) *Error {
	return &Error{
		Code: CodeInvalidInput, Category: CategoryValidation, Err: err,
		Message: advice.Render(fmt.Sprintf(invalidInput, err), advice.Of(err)),
	}
}

func failure(ctx context.Context, err error) *Error {
	var known *Error
	if errors.As(err, &known) && known != nil {
		return known
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		err = ctx.Err() // the handler gave back why it was stopped
	}
	text := func() string { return advice.Render(fmt.Sprintf(handlerFailed, err), advice.Safe(err)) } // Sprintf survives an Error that panics
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: CodeTimeout, Category: CategoryTimeout, Retryable: true, Err: err, Message: timedOut}
	case isTimeout(err):
		return &Error{Code: CodeTimeout, Category: CategoryTimeout, Retryable: true, Err: err, Message: text()}
	case errors.Is(err, context.Canceled):
		return &Error{Code: CodeCancelled, Category: CategoryCancelled, Err: err, Message: cancelMessage(ctx)}
	}
	if isTransient(err) {
		return &Error{Code: CodeConnection, Category: CategoryTransient, Retryable: true, Err: err, Message: text()}
	}
	return &Error{Code: CodeFailed, Category: CategoryInternal, Err: err, Message: text()}
}

// notRun is the failure of a call whose context ended before the tool ran.
func notRun(ctx context.Context, err error) *Error {
	e := failure(ctx, err)
	if e.Code == CodeTimeout {
		e.Message = timeOver
	}
	return e
}

// isTimeout reports whether an error is of a deadline that no context had: of a connection or a file.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) || errors.As(err, &network) && network.Timeout()
}

// isTransient reports whether a network failed in a way that may be over: a connection that was reset,
// refused or aborted, a name server that did not answer.
func isTransient(err error) bool {
	for _, transient := range []error{
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ECONNREFUSED, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.ENETDOWN, syscall.EAGAIN,
	} {
		if errors.Is(err, transient) {
			return true
		}
	}
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsTemporary
}

func cancelMessage(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Sprintf(cancelledFor, cause)
	}
	return cancelled
}

// unexplained is the error of a result that did not succeed and does not say why.
func unexplained(r *Result) *Error {
	e := &Error{Code: CodeFailed, Category: CategoryInternal, Message: r.problem()}
	switch r.Outcome {
	case Denied:
		e.Code, e.Category = CodeDenied, CategoryPermission
	case NeedsApproval:
		e.Code, e.Category = CodeNeedsApproval, CategoryPermission
	case Cancelled:
		e.Code, e.Category = CodeCancelled, CategoryCancelled
	}
	return e
}

func failed(err *Error) Result {
	outcome := Failed
	switch err.Category {
	case CategoryPermission:
		outcome = Denied
	case CategoryCancelled:
		outcome = Cancelled
	}
	return Result{Outcome: outcome, Err: err}
}
