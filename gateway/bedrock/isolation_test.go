// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/gateway/bedrock"
	"github.com/drover-agents/drover/isolation"
)

// In a container the AWS files are mounted somewhere. A run signs with those, and not with ~/.aws.
func TestIsolation_AWSConfigPathIsWhereTheFilesAreRead(t *testing.T) {
	decoys(t)
	dir, home := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(dir, "mnt", "credentials"), "[default]\n"+plantedKeys)
	writeFile(t, filepath.Join(home, ".aws", "credentials"), "[default]\naws_access_key_id = AKIAOTHER\naws_secret_access_key = other\n")
	fake := newFakeBedrock(t, answerOK)
	for name, x := range map[string]struct {
		path string
		want int
	}{"the mounted folder": {filepath.Join(dir, "mnt"), 200}, "the folder of the home": {"", 403}} {
		t.Run(name, func(t *testing.T) {
			i := isolation.Isolation{AWSConfigPath: x.path, Host: isolation.Host{Home: home, Environ: func() []string {
				return []string{"HOME=" + home, "CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-7", "AWS_EC2_METADATA_DISABLED=true", "ANTHROPIC_BEDROCK_BASE_URL=" + fake.URL}
			}}}
			up, err := claudecell.OpenUpstream(t.Context(), &i)
			if err != nil {
				t.Fatal(err)
			}
			if status, body := invoke(t, up.(*bedrock.Upstream)); status != x.want {
				t.Errorf("got %d %s, want %d", status, body, x.want)
			}
		})
	}
}
