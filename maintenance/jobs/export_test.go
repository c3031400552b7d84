package jobs

import "time"

// FindMost sets the maximum number of leftovers found.
func (s *LeftoverSettings) FindMost(files int) { s.most = files }

// LookFor sets the maximum age of the check before a deletion.
func (j *Jobs) LookFor(limit time.Duration) { j.lookMax = limit }
