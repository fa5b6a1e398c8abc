// Presets of `multiline`, which join the lines of a stack trace.

export const multilinePresets = {
  java: {
    start_pattern: '^\\S',
    condition_pattern: '^(\\s+(at |\\.\\.\\. \\d+ )|\\s*Caused by:|\\s+Suppressed:)',
    mode: 'continue_through',
    timeout_ms: 1000,
  },
  python: {
    start_pattern: '^Traceback \\(most recent call last\\):',
    condition_pattern: '^\\s',
    mode: 'continue_past',
    timeout_ms: 1000,
  },
  go: {
    start_pattern: '^(panic: |fatal error: |goroutine \\d+ )',
    condition_pattern: '^(\\s|$|goroutine \\d+ |\\S+\\(.*\\)$|created by )',
    mode: 'continue_through',
    timeout_ms: 1000,
  },
  ruby: { start_pattern: '^\\S', condition_pattern: '^\\s+from ', mode: 'continue_through', timeout_ms: 1000 },
} as const

export type MultilinePreset = keyof typeof multilinePresets
