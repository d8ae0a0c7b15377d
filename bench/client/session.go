package main

// session is one connection to one daemon, and what jobs leave open for the jobs after them.
type session struct {
	Target
	connect func() (Target, error)
	held    []Target
	watch   *watch
}

func (s *session) run(job Job) Result {
	switch job.Kind {
	case "hold":
		return s.hold(job)
	case "watch":
		return s.beginWatch(job)
	case "event":
		return s.measureEvents(job)
	}
	return job.run(s.Target)
}

func (s *session) Close() {
	s.endWatch()
	for _, target := range s.held {
		target.Close()
	}
	s.Target.Close()
}

// hold brings the number of connections that are open, and have been used, beside this one to `Count`.
func (s *session) hold(job Job) Result {
	return measure(1, 1, func(int) error {
		for len(s.held) < job.Count {
			target, err := s.connect()
			if err != nil {
				return err
			}
			s.held = append(s.held, target)
			if err := target.Stat(job.Path); err != nil {
				return err
			}
		}
		return nil
	})
}
