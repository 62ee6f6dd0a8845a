// SPDX-License-Identifier: Apache-2.0

package claudecell

// AWSFolder and CopyAWS are awsFolder and copyAWSFiles, for tests.
var (
	AWSFolder = awsFolder
	CopyAWS   = copyAWSFiles
)
