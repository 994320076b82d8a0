// A camera that orbits a point.
#pragma once

#include <glm/glm.hpp>

namespace mulciber::viewer {

class Camera {
 public:
  /// Orbits. Radians: to the side, and up.
  void turn(float yaw, float pitch);
  /// Moves by shares of the image's height.
  void move(float right, float up);
  /// Changes the distance by a factor.
  void zoom(float factor);
  void reset();

  glm::mat4 view_projection(float aspect) const;
  glm::vec3 eye() const;
  /// Pixels of an object one unit long at a distance of one, in an image of this size.
  float pixels_per_unit(glm::vec2 frame) const;

 private:
  /// The field of view, in radians, at which a narrow image also holds the width of the scene.
  float fitted(float aspect) const;

  static constexpr glm::vec3 kTarget = {0, 0.8f, 0};
  static constexpr float kDistance = 13.5f, kYaw = -0.12f, kPitch = 0.1f;
  glm::vec3 target_ = kTarget;
  float distance_ = kDistance, yaw_ = kYaw, pitch_ = kPitch;
};

}  // namespace mulciber::viewer
