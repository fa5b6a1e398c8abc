// Function `parse_glog`.

import { defineFunction } from '../function.ts'
import { googleLog } from '../google-log.ts'

export const parseGlog = defineFunction({
  ...googleLog({ name: 'glog', dateDigits: 8, completeTime: (time) => time }),
  name: 'parse_glog',
  summary: 'Parses a line of the Google logging library.',
  pure: true,
  examples: [
    {
      source: 'parse_glog!("I20210131 14:48:54.411655 15520 main.c++:9] Hello world!").message',
      result: '"Hello world!"',
    },
    { source: 'parse_glog!("W20210131 14:48:54.411655 15520 main.c++:9] Hello world!").level', result: '"warning"' },
    { source: 'parse_glog("no such line") ?? {}', result: '{  }' },
  ],
})
