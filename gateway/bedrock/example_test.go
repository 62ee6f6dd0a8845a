// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway/bedrock"
)

// Without credentials a run fails before it starts, and the error says what to do.
func ExampleNew() {
	environment := map[string]string{"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
	_, err := bedrock.New(context.Background(), bedrock.Options{
		Lookup: func(name string) (string, bool) { value, ok := environment[name]; return value, ok },
	})
	fmt.Println(advice.Text(err))
	// Output:
	// bedrock: no AWS credentials
	//   next: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK; with SSO, log in by: aws sso login
}
