// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

func TestAWSConfigPath_MissingIsAnAuthErrorThatNamesIt(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	host := isolation.Host{Home: t.TempDir(), Environ: func() []string { return []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1"} }}
	for _, path := range []string{missing, t.TempDir(), ""} {
		i := &isolation.Isolation{Host: host, AWSConfigPath: path}
		found, err := Authenticate(i)
		if err != nil || found.Mode != ModeBedrock {
			t.Fatalf("found %v, %v", found, err)
		}
		_, err = found.upstream(t.Context(), i)
		_, ok := errors.AsType[*isolation.AuthError](err)
		if named := strings.Contains(advice.Text(err), "AWSConfigPath "+missing); !ok || named != (path == missing) {
			t.Errorf("%q: the error is %v", path, err)
		}
	}
}
