// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWSConfigPath_MissingIsAnAuthErrorThatNamesIt(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	host := Host{Home: t.TempDir(), Environ: func() []string { return []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1"} }}
	for _, path := range []string{missing, t.TempDir(), ""} {
		i := &Isolation{Host: host, AWSConfigPath: path}
		found, err := i.Authenticate()
		if err != nil || found.Mode != ModeBedrock {
			t.Fatalf("found %v, %v", found, err)
		}
		_, err = found.upstream(t.Context(), i)
		_, ok := errors.AsType[*AuthError](err)
		if named := strings.Contains(err.Error(), "AWSConfigPath "+missing); !ok || named != (path == missing) {
			t.Errorf("%q: the error is %v", path, err)
		}
	}
}
