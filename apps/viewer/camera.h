// A camera that turns around a point.
#pragma once

#include <glm/glm.hpp>

namespace mulciber::viewer {

class Camera {
 public:
  /// Radians: to the side, and up.
  void turn(float yaw, float pitch);
  /// In shares of the picture's height.
  void move(float right, float up);
  /// factor: of the distance.
  void zoom(float factor);
  void reset();

  glm::mat4 view_projection(float aspect) const;
  glm::vec3 eye() const;
  /// Pixels of something one unit long at a distance of one, in a picture of this size.
  float pixels_per_unit(glm::vec2 picture) const;

 private:
  /// So that a picture that is narrow holds the width of the scene.
  float fitted(float aspect) const;

  static constexpr glm::vec3 kTarget = {0, 0.8f, 0};
  static constexpr float kDistance = 13.5f, kYaw = -0.12f, kPitch = 0.1f;
  glm::vec3 target_ = kTarget;
  float distance_ = kDistance, yaw_ = kYaw, pitch_ = kPitch;
};

}  // namespace mulciber::viewer
