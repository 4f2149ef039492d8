//go:build race

package epoch

const raceDetector = true
