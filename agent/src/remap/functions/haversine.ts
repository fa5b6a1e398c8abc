// Function `haversine`.

import type { Float } from '../../event/value.ts'
import { rounded } from '../elements.ts'
import { defineFunction, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'

const radius = { kilometers: 6371.0088, miles: 6371.0088 * 0.6213712 }

export const haversine = defineFunction({
  name: 'haversine',
  category: 'Map',
  summary: 'Returns the distance and initial bearing between two points on the earth, along the great circle.',
  parameters: [
    { name: 'latitude1', kind: kinds.float, description: 'Latitude of the first point, in degrees.' },
    { name: 'longitude1', kind: kinds.float, description: 'Longitude of the first point.' },
    { name: 'latitude2', kind: kinds.float, description: 'Latitude of the second point.' },
    { name: 'longitude2', kind: kinds.float, description: 'Longitude of the second point.' },
    {
      name: 'measurement_unit',
      kind: kinds.string,
      required: false,
      default: 'kilometers',
      enum: ['kilometers', 'miles'],
      description: 'The unit of the distance.',
    },
  ],
  returns: kinds.objectOf({ distance: kinds.float, bearing: kinds.float }),
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'haversine(1.0, 2.0, 3.0, 4.0)', result: '{ "bearing": 44.952, "distance": 314.4033853 }' },
    {
      source: 'haversine(parse_float!("inf"), 0.0, 0.0, 0.0)',
      result: '{ "bearing": 0, "distance": 0 }',
    },
    { source: 'haversine(48.0, 16.0, 48.0, 16.0)', result: '{ "bearing": 0, "distance": 0 }' },
    {
      source: 'haversine(0.0, 0.0, 0.0, 90.0, measurement_unit: "miles")',
      result: '{ "bearing": 90, "distance": 6218.4078395 }',
    },
  ],
  compile:
    () => (a: number | Float, b: number | Float, c: number | Float, d: number | Float, unit: keyof typeof radius) => {
      const radians = (degrees: number | Float): number => toNumber(degrees) * (Math.PI / 180)
      const [lat1, lat2] = [radians(a), radians(c)]
      const [dLat, dLon] = [lat2 - lat1, radians(d) - radians(b)]
      const h = Math.sin(dLat / 2) ** 2 + Math.cos(lat1) * Math.cos(lat2) * Math.sin(dLon / 2) ** 2
      const distance = 2 * Math.asin(Math.sqrt(h)) * radius[unit]
      const y = Math.sin(dLon) * Math.cos(lat2)
      const x = Math.cos(lat1) * Math.sin(lat2) - Math.sin(lat1) * Math.cos(lat2) * Math.cos(dLon)
      const bearing = (Math.atan2(y, x) * (180 / Math.PI) + 360) % 360
      return { distance: rounded(distance, 7, Math.round), bearing: rounded(bearing, 3, Math.round) }
    },
})
