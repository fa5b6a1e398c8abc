// Events of standard input as tests of sinks want them: JSON with an instant as timestamp, and without what the source adds.

/** The source, and the transform `shape` that sinks read. */
export const shapedInput = {
  sources: { in: { type: 'stdin', decoding: { codec: 'json' }, host_key: '' } },
  transforms: {
    shape: {
      type: 'remap',
      inputs: ['in'],
      source: 'del(.source_type)\n.timestamp = parse_timestamp!(.timestamp, format: "%+")',
    },
  },
}
